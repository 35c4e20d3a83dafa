"""Control batches: ends of transactions, and what a KRaft log says about itself.

Source: docs/record-formats.md#control-batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from tagwire.errors import ConfigError
from tagwire.records.control import MARKERS, ControlRecord, encode_control
from tagwire.records.record import Record
from tagwire.records.writer import BatchOptions, write


def write_control(controls: Iterable[ControlRecord], timestamp: int, **options: Unpack[BatchOptions]) -> bytes:
    """A control batch, all of whose records have `timestamp` (ms). `options` are those of `write`; control is implied.

    Raises EncodeError for a control record that has another type's message; ConfigError as `write` does, and for the
    end of a transaction in a batch that is not transactional, or anything else in one that is.
    """
    rows = []
    for control in controls:
        if (control.type in MARKERS) != options.get("transactional", False):
            raise ConfigError(f"{control.type} stands in a batch that is transactional if it ends a transaction")
        key, value = encode_control(control)
        rows.append(Record(key, value, timestamp=timestamp))
    options["control"] = True
    return write(rows, **options)


def write_end_transaction(
    *,
    commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a producer's transaction: COMMIT, or ABORT. `timestamp` in milliseconds.

    Raises EncodeError or ConfigError for a number that has no room in it.
    """
    from tagwire import messages

    marker = messages.EndTxnMarker(coordinator_epoch=coordinator_epoch)
    return write_control(
        [ControlRecord("COMMIT" if commit else "ABORT", marker)],
        timestamp,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )

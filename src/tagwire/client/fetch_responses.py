"""What a Fetch response tells of one partition: whole record batches up to where they may be read."""

from __future__ import annotations

from typing import Final

from tagwire import messages, records
from tagwire.client.config import READ_COMMITTED, FetchSettings
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchPosition, at_offset
from tagwire.errors import CorruptRecordError, DecodeError, RemoteProtocolError, TagwireError, UnsupportedVersionError
from tagwire.kernel.batch_scan import pass_batches
from tagwire.kernel.leader_epochs import leader_epochs
from tagwire.records.batch_bounds import stated_size
from tagwire.records.compression import MAX_DECOMPRESSED

MAX_OFFSET: Final = 2**63 - 1


def completed_fetch(
    position: FetchPosition,
    data: messages.FetchResponse.PartitionData,
    broker: str,
    settings: FetchSettings,
    dialect: str | None,
) -> tuple[CompletedFetch | None, TagwireError | None]:
    """The whole batches that a response without an error has, beyond which the position goes, and what is wrong with
    the batch after them.

    Raises RemoteProtocolError, CorruptRecordError, UnsupportedVersionError: it has none, and the position stays.
    """
    # A high watermark may be unknown, which costs no more than another request; what is committed has to be known.
    name, end, least = "high watermark", data.high_watermark, UNKNOWN
    is_committed = settings.isolation == READ_COMMITTED
    if is_committed:
        name, end, least = "last stable offset", data.last_stable_offset, 0
    if end < least:
        raise RemoteProtocolError(f"{broker} told {end} as the {name} of {position.partition}")
    position.succeeded()
    position.readable_end = end
    if not data.records:
        return None, None
    aborted = data.aborted_transactions if is_committed else None
    return _whole_batches(
        position,
        memoryview(data.records),
        [(one.producer_id, one.first_offset) for one in aborted] if aborted else [],
        # Of what lies beyond the last stable offset nobody knows yet what becomes.
        limit=end if is_committed else MAX_OFFSET,
        dialect=dialect,
        most=settings.max_partition_bytes,
    )


def _whole_batches(
    position: FetchPosition,
    data: memoryview,
    aborted: list[tuple[int, int]],
    limit: int,
    dialect: str | None,
    most: int,
) -> tuple[CompletedFetch | None, TagwireError | None]:
    start = position.offset
    size, count, after = (0, 0, start) if dialect else pass_batches(data, start, limit)
    epochs = leader_epochs(data, size)
    failure: TagwireError | None = None
    rest = size < len(data) or size == 0
    try:
        for header in (
            records.batch_headers(data, dialect, start=size, max_decompressed=MAX_DECOMPRESSED) if rest else ()
        ):
            if header.next_offset <= after:
                raise CorruptRecordError(f"a batch ends before it, at {header.last_offset}", offset=header.position)
            if header.base_offset >= limit:
                if not size:
                    return None, None
                break
            count, size, after = count + header.count, header.position + header.size, header.next_offset
            if epochs and epochs[-1][0] == header.partition_leader_epoch:
                epochs.pop()
            epochs.append((header.partition_leader_epoch, after))
    except (DecodeError, UnsupportedVersionError) as error:
        failure = at_offset(position.partition, after, error)
    if not size:
        raise failure or RemoteProtocolError(f"{position.partition}@{start}: {_partial(data, most)}")
    position.offset, position.idle, position.leader_epoch = after, 0.0, epochs[-1][0]
    return CompletedFetch(position, start, data[:size], count, aborted, epochs), failure


def _partial(data: memoryview, most: int) -> str:
    """Why a response holds the beginning of a batch and no whole one. A broker gives a partition's first batch whole,
    however large (KIP-74), unless its log ends inside it: then no request makes it more."""
    if len(data) >= most:
        return f"{len(data)} bytes hold no whole record batch; fetch more than {most} bytes of a partition at once"
    stated = stated_size(data)
    batch = "a batch's beginning" if stated is None else f"a batch of {stated}"
    return (
        f"the broker has {len(data)} bytes of {batch}: its log is cut off there; "
        "`tagwire log --verify` on its disk tells more, and a read goes on from a later offset"
    )

"""Numbers of logical types: from what Avro writes to what the Arrow column keeps.

Source: the Avro specification, 1.11, "Logical Types".
"""

from __future__ import annotations

import decimal
from typing import Final

from tagwire.values.avro.schema_nodes import Logical, Node

_CONTEXT: Final = decimal.Context(prec=40)

_UNITS: Final = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}

_INT64: Final = 1 << 63


def time_factors(writer: Node, reader: Node) -> tuple[int, int]:
    """What the writer's number is multiplied with, and then divided by, to be what the reader's column keeps.

    A timestamp's column keeps microseconds whatever the schema says; other columns keep the reader's own unit. A number
    without a unit is taken to be in the reader's.
    """
    if reader.logical is None:
        return 1, 1
    family, _, unit = reader.logical.name.rpartition("-")
    if unit not in _UNITS:
        return 1, 1
    kept = "micros" if unit == "millis" and family != "time" else unit
    if (
        writer.logical is not None
        and _is_time(writer.logical)
        and ("timestamp" in family) == ("timestamp" in writer.logical.name)
    ):
        unit = writer.logical.name.rpartition("-")[2]
    if _UNITS[unit] >= _UNITS[kept]:
        return _UNITS[unit] // _UNITS[kept], 1
    return 1, _UNITS[kept] // _UNITS[unit]


def stored_time(writer: Node, reader: Node, value: int) -> int:
    """A number as the reader's column keeps it.

    Raises:
        ValueError: it does not fit the column.
    """
    times, by = time_factors(writer, reader)
    kept = value * times // by
    if not -_INT64 <= kept < _INT64:
        raise ValueError(f"{value} does not fit a column of microseconds")
    return kept


def from_unscaled(logical: Logical, raw: bytes) -> decimal.Decimal:
    """A decimal from its two's complement.

    Raises:
        ValueError: it has more digits than its schema says.
    """
    unscaled = int.from_bytes(raw, "big", signed=True)
    if abs(unscaled) >= 10**logical.precision:
        raise ValueError(f"a decimal has more than {logical.precision} digits")
    return decimal.Decimal(unscaled).scaleb(-logical.scale, _CONTEXT)


def _is_time(logical: Logical) -> bool:
    return logical.name.rpartition("-")[2] in _UNITS

"""Values of Python that are plainly of no type, or of another than is asked for, put into others."""

import copy
import datetime
import decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import strategies as st

# No list with None in it: PyArrow ends the process where that is made a map.
ODD = st.sampled_from(
    [
        *(None, True, 1.5, 1.0, float("nan"), -0.0, 1e300, 7, 1 << 31, -(1 << 63), (1 << 53) + 1, 1 << 70, "é", "A"),
        *("\ud800", b"\xff", bytearray(b"x"), [], [1], (1, 2), {}, {"f0": 1}, {"member0": None}, [("a", 1)], {1: 1}),
        *(decimal.Decimal(text) for text in ("1.25", "-0.00", "1E+5", "1E+99", "1.0000000000000000001", "NaN")),
        *(datetime.date(1, 1, 1), datetime.datetime(1960, 5, 4, 3, 2, 1, 999_999), datetime.time(3), object()),
        *(
            0,
            0.0,
            "",
            b"",
            False,
            "RED",
            "BLUE",
            datetime.timedelta(microseconds=-1_500_001),
            '\x00"\\\x7f/',
            1e-7,
            1e16,
        ),
        datetime.datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(2024, 7, 1, tzinfo=datetime.UTC),
        datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2, microseconds=1))),
    ]
).map(copy.deepcopy)


def by_column(encoder: Any, kind: pa.DataType, value: object) -> bytes | None:
    """What a column of one row becomes; None where it is refused."""
    try:
        column = pa.array([value], kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    return encoder.encode(column)[0][0].as_py()  # type: ignore[no-any-return]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Containers within a value, each with the keys in it."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        found += [(value, key) for key in keys]
        for key in keys:
            found += places(value[key])
    return found


def plain(value: Any, kind: pa.DataType) -> Any:
    """A value as `to_pylist` gives it, with maps as dicts."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: plain(each, kind.item_type) for key, each in value}
    return [plain(each, kind.value_type) for each in value] if pa.types.is_list(kind) else value


def check_with_odd_values(draw: st.DrawFn, encoder: Any, kind: pa.DataType, value: Any) -> None:
    """One value, and with other things put into it, is written as a column of it is, or left to the column."""
    assert encoder.encode_one(value) in (None, by_column(encoder, kind, value))
    for _ in range(4):
        if found := places(value):
            container, key = draw(st.sampled_from(found))
            container[key] = draw(ODD)
            assert encoder.encode_one(value) in (None, by_column(encoder, kind, value))

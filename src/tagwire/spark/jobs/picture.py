"""Pictures of a table that was landed: PNG files, drawn without a display."""

from __future__ import annotations

import io
import logging
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.extras import Needs
from tagwire.spark.jobs.flights import NEW_YORK

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HOUR = 3600 * 1_000_000
_BARS = 120
_UNITS = {"hour": "h", "day": "D", "month": "M", "year": "Y"}
_BLUE, _AMBER = "#2b6cb0", "#c05621"


def departures(table: Path, png: Path) -> None:
    """Departures per hour of the day in New York, and the mean departure delay of each carrier.

    Args:
        table: directory with the Parquet files of topic `flights`, values as text.
    """
    hours: Counter[int] = Counter()
    minutes: Counter[str] = Counter()
    flown: Counter[str] = Counter()
    for batch in _batches(table, ["timestamp", "value"]):
        for hour, count in _per_hour(batch.column("timestamp")).items():
            hours[datetime.fromtimestamp(hour * 3600, UTC).astimezone(NEW_YORK).hour] += count
        for carrier, total, count in _delays(batch.column("value")):
            minutes[carrier] += total
            flown[carrier] += count
    figure, (left, right) = _canvas(2)
    left.bar(range(24), [hours[hour] for hour in range(24)], color=_BLUE)
    left.set(title="Departures per hour of the day", xlabel="hour, New York time", ylabel="departures")
    left.set_xticks(range(0, 24, 3))
    left.yaxis.set_major_formatter("{x:,.0f}")
    means = sorted((minutes[carrier] / count, carrier) for carrier, count in flown.items())
    right.barh([carrier for _, carrier in means], [mean for mean, _ in means], color=_AMBER)
    right.set(title="Mean departure delay by carrier", xlabel="minutes", ylabel="carrier")
    figure.suptitle(f"{hours.total():,} departures from New York, 2013")
    _save(figure, png)


def records(table: Path, topic: str, png: Path) -> None:
    """Records per hour, day, month or year of their timestamps, whichever makes a readable number of bars."""
    hours: Counter[int] = Counter()
    for batch in _batches(table, ["timestamp"]):
        hours.update(_per_hour(batch.column("timestamp")))
    unit, counts = _grouped(hours)
    shown = sorted(counts)[-_BARS:]
    figure, (axes,) = _canvas(1)
    axes.bar(range(len(shown)), [counts[start] for start in shown], color=_BLUE)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    step = max(1, len(shown) // 8)
    axes.set_xticks(
        range(0, len(shown), step), [start.replace("T", " ") for start in shown[::step]], rotation=30, ha="right"
    )
    left_out = len(counts) - len(shown)
    axes.set(
        title=f"Records of {topic} per {unit}"
        + (f" (the last {_BARS}; {left_out:,} are not shown)" if left_out else ""),
        xlabel=f"{unit} of the record timestamp, UTC",
        ylabel="records",
    )
    _save(figure, png)


def _batches(table: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds

    files = sorted(str(path) for path in table.glob("*/*.parquet"))
    if files:
        yield from ds.dataset(files, format="parquet").to_batches(columns=columns)


def _per_hour(timestamps: pa.Array) -> dict[int, int]:
    """Hours since 1970, and how many of the timestamps lie in each."""
    import numpy as np

    hours, counts = np.unique(timestamps.cast("int64").to_numpy(zero_copy_only=False) // _HOUR, return_counts=True)
    return dict(zip(hours.tolist(), counts.tolist()))


def _delays(values: pa.Array) -> Iterator[tuple[str, int, int]]:
    """Carrier, sum of the departure delays in minutes, and how many flights departed."""
    import pyarrow as pa
    from pyarrow import json

    if not len(values):
        return
    schema = pa.schema([("carrier", pa.string()), ("dep_delay", pa.int64())])
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    rows = json.read_json(io.BytesIO("\n".join(values.to_pylist()).encode()), parse_options=options)
    totals = rows.group_by("carrier").aggregate([("dep_delay", "sum"), ("dep_delay", "count")])
    for row in totals.to_pylist():
        yield row["carrier"], row["dep_delay_sum"] or 0, row["dep_delay_count"]


def _grouped(hours: Counter[int]) -> tuple[str, Counter[str]]:
    """Counts by the finest unit that makes at most `_BARS` bars; years where none does."""
    import numpy as np

    counts = Counter[str]()
    for unit, code in _UNITS.items():
        starts = np.array(list(hours), "datetime64[h]").astype(f"datetime64[{code}]").astype(str)
        counts = Counter()
        for start, count in zip(starts.tolist(), hours.values()):
            counts[start] += count
        if len(counts) <= _BARS:
            return unit, counts
    return "year", counts


def _canvas(columns: int) -> tuple[Figure, tuple[Axes, ...]]:
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its first run says that it looks for fonts
    with Needs("plot"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(5.5 * columns + 1, 4.5), dpi=110, layout="constrained")
    axes: Any = figure.subplots(1, columns, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, tuple(axes)


def _save(figure: Figure, png: Path) -> None:
    part = png.with_name(png.name + ".part")
    figure.savefig(part, format="png")
    part.rename(png)

"""Drawings of a table that was landed, for its page: SVG and bars of HTML, no script and no library."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tagwire.escaping import cut, html_text
from tagwire.spark.jobs.flights import NEW_YORK, carriers

if TYPE_CHECKING:
    import pyarrow as pa

_HOUR = 3600 * 1_000_000
_BARS = 120
_UNITS = {"hour": "h", "day": "D", "month": "M", "year": "Y"}
_WIDTH, _HEIGHT = 480, 150
_MOST_VALUES = 1000
_TOP = 6
_EXAMPLES = 3
_VALUE = 60


class Bar(NamedTuple):
    """One of a row of bars: what it is, how long, and what is said of it."""

    name: str
    value: float
    said: str


def header_values(files: Sequence[Path], headers: Sequence[str]) -> str:
    """For each header that is a column, the values that it has most often."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in headers}
    many: set[str] = set()
    missing = Counter[str]()
    for batch in _batches(files, headers):
        for name in headers:
            column = batch.column(name)
            missing[name] += column.null_count
            if name not in many:
                for pair in column.drop_null().value_counts().to_pylist():
                    counts[name][pair["values"]] += pair["counts"]
                if len(counts[name]) > _MOST_VALUES:
                    many.add(name)
    return "".join(_header(name, counts[name], missing[name]) for name in headers)


def _header(name: str, counts: Counter[str], missing: int) -> str:
    absent = f"; {missing:,} record{'s' if missing > 1 else ''} without it" if missing else ""
    if len(counts) > _MOST_VALUES:
        note = f"more than {_MOST_VALUES:,} different values{absent}"
        some = "".join(f"<li><code>{html_text(cut(value, _VALUE))}</code></li>" for value in islice(counts, _EXAMPLES))
        return _figure(name, note, f"<ul class='some'>{some}<li>…</li></ul>", header=True)
    shown = [Bar(cut(value, _VALUE), count, f"{count:,}") for value, count in counts.most_common(_TOP)]
    several = "1 value" if len(counts) == 1 else f"{len(counts):,} different values"
    return _figure(name, several + absent, _lying(shown), header=True)


def departures(files: Sequence[Path]) -> str:
    """Departures per hour of the day in New York, and the mean departure delay per hour and of each carrier."""
    hours, minutes, left = Counter[int](), Counter[int](), Counter[int]()
    late, flown = Counter[str](), Counter[str]()
    for batch in _batches(files, ["timestamp", "value"]):
        for hour, carrier, total, count, all_ in _delays(batch):
            local = datetime.fromtimestamp(hour * 3600, UTC).astimezone(NEW_YORK).hour
            hours[local] += all_
            minutes[local] += total
            left[local] += count
            late[carrier] += total
            flown[carrier] += count
    names = carriers()
    every = range(24)
    by_hour = [Bar(f"{hour}:00", hours[hour], f"{hours[hour]:,} departures") for hour in every]
    mean = [minutes[hour] / left[hour] if left[hour] else 0.0 for hour in every]
    by_delay = [Bar(f"{hour}:00", max(mean[hour], 0.0), f"{mean[hour]:.1f} minutes") for hour in every]
    means = sorted(((late[each] / count, each) for each, count in flown.items() if count), reverse=True)
    by_carrier = [Bar(names.get(each, each), max(value, 0.0), f"{value:.1f} min") for value, each in means]
    marks = ["0:00", "6:00", "12:00", "18:00", "24:00"]
    return (
        _figure("Departures by the hour", "scheduled, New York time", _standing(by_hour, "departures", marks))
        + _figure("How late they left", "mean of each hour, in minutes", _standing(by_delay, "minutes", marks))
        + _figure("How late by carrier", "mean departure delay", _lying(by_carrier), wide=True)
    )


def records(files: Sequence[Path]) -> str:
    """Records per hour, day, month or year of their timestamps, whichever makes a readable number of bars."""
    hours = Counter[int]()
    for batch in _batches(files, ["timestamp"]):
        hours.update(_per_hour(batch.column("timestamp")))
    if not hours:
        return ""
    unit, counts = _grouped(hours)
    shown = sorted(counts)[-_BARS:]
    left_out = len(counts) - len(shown)
    note = f"the last {_BARS}; {left_out:,} are not shown" if left_out else "of the record timestamp, UTC"
    bars = [Bar(start.replace("T", " "), counts[start], f"{counts[start]:,} records") for start in shown]
    ends = [bars[0].name] if len(bars) == 1 else [bars[0].name, bars[-1].name]
    return _figure(f"Records by the {unit}", note, _standing(bars, "records", ends), wide=True)


def _figure(title: str, note: str, drawn: str, *, header: bool = False, wide: bool = False) -> str:
    kind = " class='wide'" if wide else ""
    named = f"<code class='header'>{html_text(title)}</code>" if header else html_text(title)
    said = html_text(note)
    return f"<figure{kind}><figcaption>{named}<span class='quiet'>{said}</span></figcaption>{drawn}</figure>"


def _standing(bars: Sequence[Bar], what: str, marks: Iterable[str]) -> str:
    """Bars beside each other; what each is stands in its title, the ends of the axis below."""
    highest = max((bar.value for bar in bars), default=0) or 1
    room = _WIDTH / len(bars)
    width = min(room * 0.84, 40)
    drawn = "".join(
        f"<rect x='{at * room + (room - width) / 2:.1f}' y='{_HEIGHT - height:.1f}' width='{width:.1f}' "
        f"height='{height:.1f}'><title>{html_text(f'{bar.name}: {bar.said}')}</title></rect>"
        for at, bar in enumerate(bars)
        for height in [(_HEIGHT - 4) * bar.value / highest]
    )
    axis = "".join(f"<span>{html_text(mark)}</span>" for mark in marks)
    most = f"{highest:,.0f}" if highest >= 100 else f"{highest:,.1f}"
    return (
        f"<div class='top'>up to {most} {what}</div><svg viewBox='0 0 {_WIDTH} {_HEIGHT}' preserveAspectRatio='none' "
        f"role='img' aria-label='{what}, up to {most}'>{drawn}"
        f"<line x1='0' y1='{_HEIGHT - 0.5}' x2='{_WIDTH}' y2='{_HEIGHT - 0.5}'/></svg><div class='axis'>{axis}</div>"
    )


def _lying(bars: Sequence[Bar]) -> str:
    """Bars below each other, each between its name and its number."""
    highest = max((bar.value for bar in bars), default=0) or 1
    rows = "".join(
        f"<li><span class='name'>{html_text(bar.name) or '(empty)'}</span>"
        f"<span class='track'><i style='width:{100 * bar.value / highest:.1f}%'></i></span>"
        f"<span class='number'>{html_text(bar.said)}</span></li>"
        for bar in bars
    )
    return f"<ul class='bars'>{rows}</ul>"


def _batches(files: Sequence[Path], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    if files and columns:
        # A table that got a column has files without it, or none with it yet: the first file does not tell.
        found = {field.name: field for path in files for field in pq.read_schema(path)}
        schema = pa.schema([found.get(name, pa.field(name, pa.string())) for name in columns])
        dataset = ds.dataset([str(path) for path in files], schema, format="parquet")
        yield from dataset.to_batches(columns=list(columns))


def _per_hour(timestamps: pa.Array) -> dict[int, int]:
    """Hours since 1970, and how many of the timestamps lie in each."""
    import numpy as np

    hours, counts = np.unique(timestamps.cast("int64").to_numpy(zero_copy_only=False) // _HOUR, return_counts=True)
    return dict(zip(hours.tolist(), counts.tolist()))


def _delays(batch: pa.RecordBatch) -> Iterator[tuple[int, str, int, int, int]]:
    """By hour since 1970 and carrier: the sum of the departure delays in minutes, how many departed, and how many
    were to."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import json

    if not batch.num_rows:
        return
    schema = pa.schema([("carrier", pa.string()), ("dep_delay", pa.int64())])
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    text = "\n".join(batch.column("value").to_pylist()).encode()
    rows = json.read_json(io.BytesIO(text), parse_options=options)
    times = batch.column("timestamp").cast("int64").to_numpy(zero_copy_only=False)
    rows = rows.append_column("hour", pa.array(np.floor_divide(times, _HOUR)))
    wanted = [("dep_delay", "sum"), ("dep_delay", "count"), ("carrier", "count")]
    for row in rows.group_by(["hour", "carrier"]).aggregate(wanted).to_pylist():
        yield row["hour"], row["carrier"], row["dep_delay_sum"] or 0, row["dep_delay_count"], row["carrier_count"]


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

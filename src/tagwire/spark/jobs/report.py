"""The report of a landing: one HTML page and one picture beside the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.escaping import html_text
from tagwire.spark.jobs import picture
from tagwire.spark.jobs.landed import LandReport

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS = 8
_CELL = 120
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a202c; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.lead { font-size: 1.1rem; margin-top: .3rem; } img { max-width: 100%; }
table { border-collapse: collapse; } td, th { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
th { border-bottom: 2px solid #cbd5e0; } td { border-bottom: 1px solid #e2e8f0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; font-size: .85rem; } code { background: #edf2f7; padding: 0 .3rem; }
"""


def write_report(report: LandReport, *, flights: bool) -> tuple[Path, Path]:
    """Write `report.html` and its picture into the directory of the table; their paths.

    Args:
        flights: whether the table holds the departures of the demonstration, which have a picture of their own.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    table = report.out / "table"
    png = report.out / ("departures.png" if flights else "records.png")
    if flights:
        picture.departures(table, png)
    else:
        picture.records(table, report.topic, png)
    page = report.out / "report.html"
    part = page.with_name(page.name + ".part")
    part.write_text(_page(report, png.name), "utf-8")
    part.rename(page)
    return page, png


def first_rows(report: LandReport, count: int = FIRST_ROWS) -> tuple[list[str], list[list[str]]]:
    """The first rows of the table as text, and the names of their columns."""
    import pyarrow.parquet as pq

    names: list[str] = []
    rows: list[list[str]] = []
    for path in sorted((report.out / "table").glob("*/*.parquet")):
        if len(rows) >= count:
            break
        found = next(pq.ParquetFile(path).iter_batches(count - len(rows)))
        names = [*found.schema.names, "date"]
        date = path.parent.name.removeprefix("date=")
        rows += [[*cells, date] for cells in zip(*(_texts(column) for column in found.columns))]
    return names, rows


def summary(report: LandReport) -> str:
    """What a run did, in one sentence."""
    if not report.rows:
        return f"Nothing new in {report.topic}: 0 rows landed."
    batches = "1 batch" if report.batches == 1 else f"{report.batches:,} batches"
    return f"{report.rows:,} rows landed in {batches}, {report.seconds:.1f} s, {report.rate:,.0f} records/s."


def partition_rows(report: LandReport) -> list[list[str]]:
    """One line for each partition this run landed: partition, rows, first and last offset."""
    return [
        [str(index), f"{part.rows:,}", f"{part.first_offset:,}", f"{part.last_offset:,}"]
        for index, part in report.partitions.items()
    ]


PARTITION_TITLES = ("partition", "rows", "first offset", "last offset")


def _page(report: LandReport, picture_name: str) -> str:
    names, rows = first_rows(report)
    keys = [[key, f"{count:,}", "yes" if key in report.headers else ""] for key, count in report.header_keys.items()]
    versions = [[api, str(version)] for api, version in report.versions.items()]
    lead = f"{html_text(summary(report))} The table holds {report.table_rows:,} rows in {report.table_files:,} files."
    sections = [
        f"<h1>{html_text(report.topic)}</h1><p class=lead>{lead}</p>",
        f'<p><img src="{html_text(picture_name)}" alt="picture of the table"></p>',
        _section("Landed by this run", PARTITION_TITLES, partition_rows(report), numbers=(0, 1, 2, 3)),
        _section("Header keys seen", ("key", "records", "a column"), keys, numbers=(1,)),
        _section("Protocol versions negotiated", ("API", "version"), versions, numbers=(1,)),
        _section("First rows", names, rows),
        f"<p>Table: <code>{html_text(str(report.out / 'table'))}</code></p>",
    ]
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{html_text(report.topic)} - tagwire</title>"
    return f"{head}<style>{_STYLE}</style><body>{''.join(sections)}</body></html>\n"


def _section(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        kinds = [" class=number" if column in numbers else "" for column in range(len(cells))]
        return "<tr>" + "".join(f"<{tag}{kind}>{html_text(cell)}</{tag}>" for kind, cell in zip(kinds, cells)) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    if not body:
        return f"<h2>{html_text(title)}</h2><p>None.</p>"
    return f"<h2>{html_text(title)}</h2><div class=wide><table>{line('th', titles)}{body}</table></div>"


def _texts(column: pa.Array) -> list[str]:
    """The values of a column as text; timestamps in UTC, also those that Python's own datetime cannot hold."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
        return [(text or "").removesuffix(".000000") for text in column.to_pylist()]
    return [_text(value) for value in column.to_pylist()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"

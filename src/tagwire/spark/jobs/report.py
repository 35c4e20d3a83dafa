"""The report of a landing: one HTML page in the directory of the table, with its pictures inside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tagwire.capture.report import STYLE
from tagwire.escaping import cut, html_text
from tagwire.spark.jobs import charts
from tagwire.spark.jobs.landed import LandReport
from tagwire.spark.tables.iceberg_table import opened_by
from tagwire.spark.tables.opening import DELTA, ICEBERG, open_table
from tagwire.spark.tables.table_settings import NONE, partition_columns

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS: Final = 8
PAGE: Final = "_report.html"
"""Begins with an underscore, as readers of Parquet pass over it."""
PARTITION_TITLES: Final = ("partition", "rows", "first offset", "last offset")
_CELL: Final = 120
_OWN_STYLE: Final = Path(__file__).with_name("report.css")
_PLACES: Final = ("partition", "offset")


def write_report(report: LandReport, *, flights: bool) -> Path:
    """Write the page into the directory of the table; its path.

    Args:
        report: of a table in a directory of this machine.
        flights: whether the table holds the departures of the demonstration, which have pictures of their own.
    """
    assert report.out is not None
    page = report.out / PAGE
    part = page.with_name(page.name + ".part")
    part.write_text(_page(report, flights), "utf-8")
    part.rename(page)
    return page


def first_rows(report: LandReport, count: int = FIRST_ROWS) -> tuple[list[str], list[list[str]]]:
    """The first rows of the table as text, and the names of their columns: headers right after the key."""
    import pyarrow.parquet as pq

    rows: list[dict[str, str]] = []
    if report.out is None:
        return [], []
    table = open_table(report.where, report.format)
    lacking = table.partition_values()
    for path in table.files():
        if len(rows) >= count:
            break
        # A file of a micro-batch without rows has none; a table that got a column has files without it.
        for found in islice(pq.ParquetFile(path).iter_batches(count - len(rows)), 1):
            columns = dict(zip(found.schema.names, map(_texts, found.columns)))
            columns |= {name: [value or ""] * found.num_rows for name, value in lacking.get(path, {}).items()}
            rows += [dict(zip(columns, cells)) for cells in zip(*columns.values())]
    names = _ordered(report, list(dict.fromkeys(name for row in rows for name in row)))
    return names, [[row.get(name, "") for name in names] for row in rows]


def _files(report: LandReport) -> list[Path]:
    """The files of the table, where they are on this machine."""
    return [] if report.out is None else open_table(report.where, report.format).files()


def _ordered(report: LandReport, names: Sequence[str]) -> list[str]:
    """Who a record is first, then its headers, when and where it came, and last what may be long."""
    first = ["key", *report.headers, "timestamp", *_PLACES]
    return [*(name for name in first if name in names), *(name for name in names if name not in first)]


def summary(report: LandReport) -> str:
    """What a run did, in one sentence."""
    if not report.rows:
        return f"Nothing new in {report.topic}: 0 rows landed."
    batches = "1 batch" if report.batches == 1 else f"{report.batches:,} batches"
    return f"{report.rows:,} rows landed in {batches}, {report.seconds:.1f} s, {report.rate:,.0f} records/s."


def holding(report: LandReport) -> str:
    """What the table holds."""
    rows = "1 row" if report.table_rows == 1 else f"{report.table_rows:,} rows"
    files = "1 Parquet file" if report.table_files == 1 else f"{report.table_files:,} Parquet files"
    return f"{rows} in {files}, {report.table_bytes / (1 << 20):,.1f} MiB"


def partition_rows(report: LandReport) -> list[list[str]]:
    """One line for each partition this run landed: partition, rows, first and last offset."""
    return [
        [str(index), f"{part.rows:,}", f"{part.first_offset:,}", f"{part.last_offset:,}"]
        for index, part in report.partitions.items()
    ]


def ways_to_open(report: LandReport, place: str) -> list[tuple[str, str]]:
    """How other programs read the table: each one's name, and a line of Python. None while it has no file.

    Spark reads Delta with the packages of Delta Lake, DuckDB with its extension `delta`; the others with `deltalake`.
    Iceberg's tables are found in their catalogs, by `pyiceberg`.

    Args:
        place: the directory as the reader would name it.
    """
    if not report.table_files:
        return []
    name = json.dumps(place, ensure_ascii=False)
    if report.format == DELTA:
        source = f"from delta_scan('{place.replace(chr(39), chr(39) * 2)}')"
        return [
            ("DuckDB", f"duckdb.sql({json.dumps(source, ensure_ascii=False)})"),
            ("Polars", f"polars.read_delta({name})"),
            ("pandas", f"deltalake.DeltaTable({name}).to_pandas()"),
            ("Spark", f'spark.read.format("delta").load({name})'),
        ]
    if report.format == ICEBERG:
        opened = f"pyiceberg.catalog.{opened_by(report.where)}"
        return [("Polars", f"polars.scan_iceberg({opened}).collect()"), ("pandas", f"{opened}.scan().to_pandas()")]
    folders = "".join(f"/{name}=*" for name in partition_columns(report.partition_by))
    files = f"{place}{folders}/*.parquet"
    source = "'" + files.replace("'", "''") + "'"
    query = f"from read_parquet({source}, hive_partitioning = true)" if folders else f"from {source}"
    pattern = json.dumps(files, ensure_ascii=False) + (", hive_partitioning=True" if folders else "")
    return [
        ("DuckDB", f"duckdb.sql({json.dumps(query, ensure_ascii=False)})"),
        ("Polars", f"polars.read_parquet({pattern})"),
        ("pandas", f"pandas.read_parquet({name})"),
        ("Spark", f"spark.read.parquet({name})"),
    ]


def _page(report: LandReport, flights: bool) -> str:
    topic = html_text(report.topic)
    style = STYLE.read_text("utf-8") + _OWN_STYLE.read_text("utf-8")
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{topic} as a table - tagwire</title>",
            f"<style>{style}</style></head><body>",
            _head(report, flights),
            "<main>",
            _first(report),
            _pictures(report, flights),
            _opening(report),
            _run(report),
            "</main>",
            "<footer class='quiet'><p>Run it again: nothing is landed twice, and whatever is new is.</p></footer>",
            "</body></html>\n",
        ]
    )


def _head(report: LandReport, flights: bool) -> str:
    from tagwire import __version__

    split = "no partitions" if report.partition_by == NONE else f"by {report.partition_by.replace(',', ', ')}"
    broker = f"{report.bootstrap} (tagwire's own, for this demonstration)" if flights else report.bootstrap
    facts = [
        ("topic", report.topic),
        ("broker", broker),
        ("cluster", report.cluster_id or "has no id"),
        ("landed", f"{report.landed_at[:19].replace('T', ' ')} UTC"),
        ("table", f"{report.where}, {report.format}, {split}"),
        ("made by", f"tagwire {__version__}"),
    ]
    told = "".join(f"<div><dt>{name}</dt><dd>{html_text(value)}</dd></div>" for name, value in facts)
    return (
        "<header><p class='eyebrow'>A Kafka topic, landed as a table</p>"
        f"<h1>{html_text(report.topic)}: {html_text(holding(report))}</h1>"
        f"<p class='quiet'>{html_text(summary(report))}</p><dl class='facts'>{told}</dl></header>"
    )


def _first(report: LandReport) -> str:
    names, rows = first_rows(report)
    if not rows:
        return "<section><h2>First records</h2><p class='quiet'>The table has no rows yet.</p></section>"
    kinds = [_kind(report, name) for name in names]
    heads = "".join(f"<th scope='col'{kind}>{html_text(name)}</th>" for name, kind in zip(names, kinds))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind} data-column='{html_text(name)}'><span>{html_text(cell)}</span></td>"
            for name, kind, cell in zip(names, kinds, row)
        )
        + "</tr>"
        for row in rows
    )
    note = "The marked columns are record headers." if report.headers else "No record header was made a column."
    return (
        f"<section><h2 id='first'>First records</h2><p class='quiet'>{note}</p>"
        "<div class='panel' tabindex='0' role='region' aria-labelledby='first'><table class='records'>"
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _kind(report: LandReport, name: str) -> str:
    if name in report.headers:
        return " class='header'"
    if name in _PLACES:
        return " class='number'"
    return " class='long'" if name == "value" else ""


def _pictures(report: LandReport, flights: bool) -> str:
    files = _files(report)
    drawn = charts.departures(files) if flights else charts.records(files)
    named = [name for name in report.headers if name not in partition_columns(report.partition_by)]
    by_header = charts.header_values(files, named) if files else ""
    parts = []
    if by_header:
        parts.append(
            "<section><h2>What the headers say</h2><p class='quiet'>Each is a column, and can be grouped by like any "
            f"other.</p><div class='charts'>{by_header}</div></section>"
        )
    if files and drawn:
        parts.append(f"<section><h2>What the records say</h2><div class='charts large'>{drawn}</div></section>")
    return "".join(parts)


def _opening(report: LandReport) -> str:
    ways = "".join(
        f"<dt>{name}</dt><dd><code>{html_text(line)}</code></dd>" for name, line in ways_to_open(report, report.where)
    )
    return f"<section><h2>Open it</h2><dl class='ways'>{ways}</dl></section>" if ways else ""


def _run(report: LandReport) -> str:
    keys = [[key, f"{count:,}", "yes" if key in report.headers else "no"] for key, count in report.header_keys.items()]
    versions = "".join(
        f"<span class='chip'>{html_text(api)} {version}</span>" for api, version in report.versions.items()
    )
    return (
        "<section><h2>This run</h2><div class='tables'>"
        + _table("Offsets", PARTITION_TITLES, partition_rows(report), numbers=(1, 2, 3))
        + _table("Header keys", ("key", "records", "a column"), keys, numbers=(1,))
        + f"</div><h3>Versions negotiated with the broker</h3><p class='chips'>{versions}</p></section>"
    )


def _table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int]) -> str:
    kinds = [" class='number'" if column in numbers else "" for column in range(len(titles))]
    heads = "".join(f"<th scope='col'{kind}>{html_text(name)}</th>" for kind, name in zip(kinds, titles))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{html_text(cell)}</td>" for kind, cell in zip(kinds, row)) + "</tr>"
        for row in rows
    )
    if not body:
        return f"<div><h3>{title}</h3><p class='quiet'>None.</p></div>"
    return (
        f"<div><h3>{title}</h3><div class='panel'><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        "</div></div>"
    )


def _texts(column: pa.Array) -> list[str]:
    """The values of a column as text; times in UTC, also those that Python's own datetime cannot hold."""
    import pyarrow as pa

    # Zones are left out first: Arrow writes times of one only where it finds the system's list of them.
    column = column.cast(_with(column.type, pa.types.is_timestamp, lambda kind: pa.timestamp(kind.unit)))
    column = column.cast(_with(column.type, _is_time, lambda kind: pa.string()))
    return [_text(value).removesuffix(".000000") for value in column.to_pylist()]


def _is_time(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _with(
    kind: pa.DataType, meant: Callable[[pa.DataType], bool], other: Callable[[pa.DataType], pa.DataType]
) -> pa.DataType:
    """The type with others for those in it that are meant."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with(field.type, meant, other)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with(kind.key_type, meant, other), _with(kind.item_type, meant, other))
    if pa.types.is_list(kind):
        return pa.list_(_with(kind.value_type, meant, other))
    return other(kind) if meant(kind) else kind


def _text(value: Any) -> str:
    if value is None:
        return ""
    return cut(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value), _CELL)

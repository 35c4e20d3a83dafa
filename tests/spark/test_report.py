"""The report of a table and its pictures, from the table alone, and what a browser makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import deltalake
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg
import pytest
from pyiceberg.catalog import load_catalog

from tagwire import __version__
from tagwire.capture.report import STYLE
from tagwire.spark.jobs.flights import HEADERS, departures
from tagwire.spark.jobs.landed import Landed, LandReport
from tagwire.spark.jobs.report import first_rows, partition_rows, summary, ways_to_open, write_report

from ..pages import CHROMIUM, NO_CHROMIUM, contrast, measure, themes

STYLES = [path.read_text() for path in (STYLE, Path(write_report.__code__.co_filename).with_name("report.css"))]
PHONE, SCREEN = 375, 1280


def table_of(out: Path, rows: dict[str, list], folder: str = ".", batch: int = 0) -> None:
    path = out / folder / f"batch-{batch:08d}-0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows["timestamp"] = pa.array(rows["timestamp"], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(rows), path)


def report_of(out: Path, topic: str = "t", rows: int = 3, **changed: Any) -> LandReport:
    landed = {0: Landed(rows, 5, 7)} if rows else {}
    keys = {"origin": rows, "<b>": 1} if rows else {}
    report = LandReport(
        topic=topic,
        bootstrap="kafka-1:9092",
        cluster_id="cluster-7",
        landed_at="2026-11-22T08:00:00+00:00",
        where=str(out),
        format="parquet",
        partition_by="none",
        headers=("origin",),
        rows=rows,
        files=1,
        bytes=1000,
        malformed=0,
        batches=1,
        behind=0,
        seconds=2.0,
        rate=rows / 2,
        partitions=landed,
        header_keys=keys,
        versions={"Fetch": 12},
        table_rows=3,
        table_files=1,
        table_bytes=1000,
    )
    return replace(report, **changed)


def test_the_page_shows_what_was_landed_and_escapes_what_came_from_the_wire(tmp_path):
    rows = {"value": [b"<script>", b"\xff", None], "offset": [5, 6, 7], "timestamp": [0, 1, 2]}
    table_of(tmp_path, {**rows, "origin": ["<i>", "\u202e\x1b", None]})
    page = write_report(report_of(tmp_path, topic="<t>"), flights=False)
    text = page.read_text()
    assert "3 rows landed in 1 batch" in text
    for fact in (
        "&lt;t&gt;",
        "kafka-1:9092",
        "cluster-7",
        "2026-11-22 08:00:00 UTC",
        f"tagwire {__version__}",
        "Fetch 12",
    ):
        assert fact in text
    for escaped in ("&lt;script&gt;", "&lt;b&gt;", "&lt;i&gt;", r"\u202e\x1b"):
        assert escaped in text
    assert not set("\u202e\x1b") & set(text)
    assert not re.search(r"<script|<t>|<i>|<b>", text)
    assert {path.name for path in tmp_path.iterdir()} == {"batch-00000000-0000.parquet", "_report.html"}


def test_the_page_is_one_file_that_asks_for_nothing(tmp_path):
    table_of(tmp_path, {"origin": ["EWR"], "timestamp": [0]})
    text = write_report(report_of(tmp_path), flights=False).read_text()
    assert "<svg" in text
    assert "name='viewport'" in text
    assert not re.search(r"<script|\bsrc=|https?:|url\(|@import", text)
    assert re.findall(r"<th(?!ead| scope)", text) == []


def test_first_rows_are_in_order_with_the_headers_after_the_key_and_carry_their_date(tmp_path):
    columns = ["value", "offset", "origin", "key"]
    for offset, date in ((7, "1970-01-02"), (5, "1970-01-01")):
        rows = {name: [f"{name} {offset}"] for name in columns}
        table_of(tmp_path, {**rows, "timestamp": [0]}, folder=f"date={date}", batch=offset)
    names, rows = first_rows(report_of(tmp_path), 2)
    assert names == ["key", "origin", "timestamp", "offset", "value", "date"]
    assert [(row[0], row[-1]) for row in rows] == [("key 5", "1970-01-01"), ("key 7", "1970-01-02")]
    assert len(first_rows(report_of(tmp_path), 1)[1]) == 1


def test_first_rows_come_from_the_files_that_have_some(tmp_path):
    table_of(tmp_path, {"key": [], "offset": [], "timestamp": []}, batch=0)
    table_of(tmp_path, {"key": ["k"], "offset": [5], "timestamp": [0]}, batch=1)
    assert first_rows(report_of(tmp_path)) == (["key", "timestamp", "offset"], [["k", "1970-01-01 00:00:00", "5"]])


def test_first_rows_tell_of_times_in_values_that_python_cannot_hold(tmp_path):
    far = pa.array([400_000_000_000_000_000, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    day = pa.array([3_000_000, 0], pa.int32()).cast(pa.date32())
    value = pa.StructArray.from_arrays([far, day, pa.ListArray.from_arrays([0, 1, 2], far)], ["at", "day", "all"])
    table_of(
        tmp_path,
        {"key": day, "value": value, "tags": pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], far), "timestamp": [0, 1]},
    )
    names, rows = first_rows(report_of(tmp_path))
    assert names == ["key", "timestamp", "value", "tags"]
    at = "14645-06-30 15:06:40.000000"
    assert rows == [
        [
            "10183-09-21",
            "1970-01-01 00:00:00",
            f"{{'at': '{at}', 'day': '10183-09-21', 'all': ['{at}']}}",
            f"[('a', '{at}')]",
        ],
        [
            "1970-01-01",
            "1970-01-01 00:00:00.000001",
            "{'at': None, 'day': '1970-01-01', 'all': [None]}",
            "[('b', None)]",
        ],
    ]


def test_first_rows_of_a_table_that_got_a_column_have_each_value_under_its_name(tmp_path):
    table_of(tmp_path, {"key": ["k"], "offset": [5], "timestamp": [0]}, batch=0)
    table_of(tmp_path, {"key": ["l"], "offset": [6], "timestamp": [0], "origin": ["o"]}, batch=1)
    names, rows = first_rows(report_of(tmp_path))
    assert names == ["key", "origin", "timestamp", "offset"]
    assert rows == [["k", "", "1970-01-01 00:00:00", "5"], ["l", "o", "1970-01-01 00:00:00", "6"]]


def test_what_headers_say_is_counted_and_values_without_end_are_not_kept(tmp_path):
    origins = ["EWR"] * 3 + ["JFK", None]
    table_of(tmp_path, {"origin": origins, "trace": [f"{n}" for n in range(5)], "timestamp": [0] * 5})
    table_of(
        tmp_path, {"origin": ["EWR"] * 1001, "trace": [f"t{n}" for n in range(1001)], "timestamp": [0] * 1001}, batch=1
    )
    text = write_report(report_of(tmp_path, headers=("origin", "trace")), flights=False).read_text()
    assert "2 different values; 1 record without it" in text
    assert re.search(r"EWR</span>.*?1,004</span>", text)
    assert "more than 1,000 different values" in text


def lakes(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A table of each partitioning, with what a kill left beside it, and the lines that open it."""
    for partition_by in ("none", "month", "date"):
        place = folder / f"it's {partition_by}"
        inner = "." if partition_by == "none" else f"{partition_by}=1970-01-01"
        table_of(place, {"offset": [5, 6, 7], "timestamp": [0, 1, 2]}, folder=inner)
        (place / "_staging").mkdir()
        (place / "_staging/part-0.parquet").write_bytes(b"half a file")
        yield place, dict(ways_to_open(report_of(place, partition_by=partition_by), str(place)))


def test_a_header_that_became_a_column_later_is_drawn_too(tmp_path):
    rows = {"key": ["k"], "value": ["v"], "offset": [5], "timestamp": [0]}
    table_of(tmp_path, dict(rows), batch=0)
    table_of(tmp_path, {**rows, "timestamp": [0], "origin": ["o"]}, batch=1)
    text = write_report(report_of(tmp_path, headers=("origin", "trace-id")), flights=False).read_text()
    assert "1 value; 1 record without it" in text
    assert "0 different values; 2 records without it" in text


def test_the_lines_that_open_a_table_do(tmp_path):
    for place, ways in lakes(tmp_path):
        assert ways["Spark"] == f'spark.read.parquet("{place}")'
        assert list(eval(ways["pandas"], {"pandas": pandas})["offset"]) == [5, 6, 7]
        assert list(eval(ways["Polars"], {"polars": polars})["offset"]) == [5, 6, 7]


def test_so_does_the_line_for_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    for _, ways in lakes(tmp_path):
        assert [row[0] for row in eval(ways["DuckDB"], {"duckdb": duckdb}).fetchall()] == [5, 6, 7]


def test_the_lines_that_open_an_iceberg_table_do(tmp_path, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    place = tmp_path / "it's, a place"
    place.mkdir()
    catalog = load_catalog("tagwire", type="sql", uri=f"sqlite:///{place}/_catalog.db", warehouse=f"file://{place}")
    rows = pa.table({"partition": [0, 0], "offset": [0, 1]})
    catalog.create_namespace("default")
    catalog.create_table("default.orders", rows.schema, location=f"file://{place}").append(rows)
    ways = dict(ways_to_open(report_of(place, format="iceberg"), str(place)))
    for name, package in (("Polars", polars), ("pandas", pandas)):
        found = eval(ways[name], {package.__name__: package, "pyiceberg": pyiceberg})
        assert found["offset"].to_list() == [0, 1]
    elsewhere = report_of("iceberg://prod/sales.orders", format="iceberg")
    assert 'load_catalog("prod").load_table("sales.orders")' in dict(ways_to_open(elsewhere, ""))["pandas"]
    assert first_rows(elsewhere) == ([], [])


def test_the_lines_that_open_a_delta_table_do(tmp_path):
    """DuckDB's and Spark's need packages of their own: tests/interop/test_landed_tables.py."""
    place = tmp_path / "it's"
    rows = pa.table({"offset": [5, 6, 7], "date": ["2013-07-04", "2013-07-04", None]})
    deltalake.write_deltalake(place, rows, partition_by=["date"])
    (place / "part-left-by-a-kill.parquet").write_bytes(b"half a file")
    ways = dict(ways_to_open(report_of(place, format="delta", partition_by="date"), str(place)))
    assert list(ways) == ["DuckDB", "Polars", "pandas", "Spark"]
    for name, package in (("Polars", polars), ("pandas", pandas)):
        found = eval(ways[name], {package.__name__: package, "deltalake": deltalake})
        assert sorted(found["offset"]) == [5, 6, 7]
    assert ways["DuckDB"] == f"""duckdb.sql("from delta_scan('{tmp_path}/it''s')")"""
    assert ways["Spark"] == f'spark.read.format("delta").load("{place}")'
    names, shown = first_rows(report_of(place, format="delta"))
    assert sorted(row[names.index("offset")] for row in shown) == ["5", "6", "7"]


def test_a_table_without_a_file_is_opened_by_nothing(tmp_path):
    assert ways_to_open(report_of(tmp_path, table_files=0), "out") == []


def test_partitions_are_told_with_their_offsets(tmp_path):
    assert partition_rows(report_of(tmp_path)) == [["0", "3", "5", "7"]]


def test_a_run_without_news_says_so(tmp_path):
    assert summary(report_of(tmp_path, rows=0)) == "Nothing new in t: 0 rows landed."


def test_a_table_without_rows_has_a_report(tmp_path):
    text = write_report(report_of(tmp_path, rows=0), flights=False).read_text()
    assert "0 rows landed" in text
    assert "The table has no rows yet" in text


@pytest.mark.parametrize(
    "timestamps",
    [
        [-1000],
        [2**62, -(2**62), 0],
        [hour * 3_600_000_000 for hour in range(500)],
        [year * 31_557_600_000_000 for year in range(400)],
    ],
    ids=["no timestamp", "far away", "many hours", "many years"],
)
def test_any_timestamps_make_a_picture(tmp_path, timestamps):
    table_of(tmp_path, {"timestamp": timestamps})
    text = write_report(report_of(tmp_path, headers=()), flights=False).read_text()
    assert 1 <= text.count("<rect") <= 120


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of some departures."""
    out = tmp_path_factory.mktemp("flights")
    some = list(islice(departures(), 2000))
    columns = {name: [dict(record.headers)[name].decode() for record in some] for name in HEADERS}
    keys, values = ([getattr(record, name).decode() for record in some] for name in ("key", "value"))
    stamps = [record.timestamp * 1000 for record in some]
    places = {"partition": [0] * len(some), "offset": list(range(len(some)))}
    table_of(out, {"key": keys, "value": values, **places, "timestamp": stamps, **columns})
    return write_report(report_of(out, topic="flights", headers=HEADERS), flights=True)


def test_departures_have_pictures_of_their_own(flown):
    text = flown.read_text()
    assert text.count("<svg") == 2
    assert "Departures by the hour" in text
    assert "ExpressJet Airlines Inc." in text


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_header_columns_are_in_sight_and_nothing_scrolls_sideways(flown, width):
    cells = "[...page.querySelectorAll('tbody tr:first-child td.header')].map(c => c.getBoundingClientRect())"
    found = measure(flown, width, f"[page.documentElement.scrollWidth, ...{cells}.flatMap(c => [c.left, c.right])]")
    scrolls, *edges = map(float, found.split(","))
    assert 0 < scrolls <= width
    assert len(edges) == 2 * len(HEADERS)
    assert all(0 <= edge <= width for edge in edges)


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
def test_headers_stand_out_and_can_be_read(theme):
    colours = themes(*STYLES)[theme]
    for text in ("ink", "accent"):
        assert contrast(colours[text], colours["mark"]) >= 4.5
    assert contrast(colours["bar"], colours["card"]) >= 3
    assert contrast(colours["mark"], colours["card"]) > 1.05

"""The report and pictures of a table, from the table alone."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tagwire.spark.jobs.flights import departures
from tagwire.spark.jobs.landed import Landed, LandReport
from tagwire.spark.jobs.report import first_rows, partition_rows, summary, write_report

PNG = b"\x89PNG\r\n\x1a\n"


def table_of(out: Path, rows: dict[str, list], date: str = "2013-01-01") -> None:
    path = out / "table" / f"date={date}" / "batch-00000000-0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows["timestamp"] = pa.array(rows["timestamp"], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table(rows), path)


def report_of(out: Path, topic: str = "t", rows: int = 3) -> LandReport:
    landed = {0: Landed(rows, 5, 7)} if rows else {}
    keys = {"origin": rows, "<b>": 1} if rows else {}
    return LandReport(
        topic=topic,
        out=out,
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


def test_the_page_shows_what_was_landed_and_escapes_what_came_from_the_wire(tmp_path):
    table_of(tmp_path, {"value": [b"<script>", b"\xff", None], "offset": [5, 6, 7], "timestamp": [0, 1, 2]})
    page, png = write_report(report_of(tmp_path), flights=False)
    text = page.read_text()
    assert "3 rows landed in 1 batch" in text
    assert "Fetch" in text
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;" in text
    assert "<script>" not in text
    assert "<b>" not in text
    assert png.name in text
    assert png.read_bytes().startswith(PNG)
    assert {path.name for path in tmp_path.iterdir()} == {"table", "report.html", "records.png"}


def test_first_rows_are_in_order_and_carry_their_date(tmp_path):
    table_of(tmp_path, {"offset": [7], "timestamp": [86_400_000_000]}, date="1970-01-02")
    table_of(tmp_path, {"offset": [5, 6], "timestamp": [0, 1]}, date="1970-01-01")
    names, rows = first_rows(report_of(tmp_path), 2)
    assert names == ["offset", "timestamp", "date"]
    assert [(row[0], row[2]) for row in rows] == [("5", "1970-01-01"), ("6", "1970-01-01")]
    assert [row[0] for row in first_rows(report_of(tmp_path))[1]] == ["5", "6", "7"]


def test_partitions_are_told_with_their_offsets(tmp_path):
    assert partition_rows(report_of(tmp_path)) == [["0", "3", "5", "7"]]


def test_a_run_without_news_says_so(tmp_path):
    assert summary(report_of(tmp_path, rows=0)) == "Nothing new in t: 0 rows landed."


def test_a_table_without_rows_has_a_report(tmp_path):
    (tmp_path / "table").mkdir()
    page, png = write_report(report_of(tmp_path, rows=0), flights=False)
    assert "0 rows landed" in page.read_text()
    assert png.read_bytes().startswith(PNG)


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
    _, png = write_report(report_of(tmp_path), flights=False)
    assert png.read_bytes().startswith(PNG)


def test_departures_have_a_picture_of_their_own(tmp_path):
    some = list(islice(departures(), 2000))
    stamps = [record.timestamp * 1000 for record in some]
    table_of(tmp_path, {"value": [record.value.decode() for record in some], "timestamp": stamps})
    _, png = write_report(report_of(tmp_path, topic="flights"), flights=True)
    assert png.name == "departures.png"
    assert png.read_bytes().startswith(PNG)

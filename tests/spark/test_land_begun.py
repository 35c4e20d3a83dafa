"""What a table was begun with is told in the words of whoever lands into it now. Nothing here needs Spark to run."""

from __future__ import annotations

import json

import pytest

from tagwire.cli import main
from tagwire.spark.tables.parquet_table import ParquetTable
from tagwire.spark.tables.table_settings import TableSettings
from tagwire.spark.values.options import resolved_options

SPEC = json.dumps({"type": "data", "name": "Order", "validVersions": "0", "flexibleVersions": "none", "fields": []})
CORRUPT = {"columnNameOfCorruptRecord": "_corrupt_record"}
AS_JSON = {"value.format": "json", "value.schema": "id bigint, tags array<string>", **CORRUPT}
AS_MESSAGES = {"value.format": "message", "value.message": SPEC, "value.version": "0", **CORRUPT}
GIVEN = ["--value-format", "json", "--value-schema"]


@pytest.mark.parametrize(
    ("begun", "given", "said"),
    [
        ({}, [*GIVEN, "id bigint"], "with values as they are, not decoded by --value-format=json;"),
        (
            AS_JSON,
            [*GIVEN, "id int"],
            "with --value-schema=id bigint, tags array<string>, not id int;",
        ),
        (AS_JSON, ["--corrupt-column", "bad"], "with --corrupt-column=_corrupt_record, not bad;"),
        (AS_MESSAGES, [*GIVEN, "id int"], "with --value-format=message, not json;"),
        (
            AS_MESSAGES,
            ["--value-format", "message", "--message", SPEC.replace('"none"', '"0+"'), "--version", "0"],
            "with --message=spec of Order, not another spec of Order;",
        ),
        ({}, ["--headers", "a,b"], "with --headers (none), not a,b;"),
        ({}, ["--partition-by", "day"], "with --partition-by=none, not day;"),
    ],
)
def test_a_table_says_what_it_was_begun_with_in_the_options_that_were_typed(
    broker, topic, tmp_path, capsys, begun, given, said
):
    table = ParquetTable(tmp_path / "out")
    with table.lock():
        table.claim(table.judge(topic, "", "", TableSettings(values=resolved_options(begun) if begun else None)))
    assert main(["land", topic, "--bootstrap", broker.bootstrap, "--to", str(tmp_path / "out"), *given]) == 2
    assert f"was begun {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--value-format", "json"], "--value-schema: missing; --value-format=json needs it"),
        ([*GIVEN, "id bigot"], "--value-schema='id bigot': there is no type 'bigot'"),
        ([*GIVEN, "id int", "--version", "1"], "--version: means nothing with --value-format=json"),
        ([*GIVEN, "id int", "--mode", "LOUD"], "--mode='LOUD': needs PERMISSIVE"),
        (
            [*GIVEN, "id int", "--corrupt-column", "date", "--partition-by", "date"],
            "--corrupt-column: 'date' would be a second column",
        ),
        (["--headers", "key"], "--headers: 'key' would be a second column"),
    ],
)
def test_a_wrong_option_of_land_is_called_what_was_typed(broker, topic, tmp_path, capsys, given, said):
    assert main(["land", topic, "--bootstrap", broker.bootstrap, "--to", str(tmp_path / "out"), *given]) == 2
    assert capsys.readouterr().err.startswith(f"tagwire: {said}")

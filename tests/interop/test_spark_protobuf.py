"""Spark's `from_protobuf` and `value.format=protobuf` on the same bytes: the same columns, type by type, or a reason.

Bytes are of Protobuf's own library. The newest release whose `from_protobuf` is published where its jars are is Spark
3.4.1; it runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from kafka_jars import MavenError, classpath

from tagwire.spark.columns import arrow_type
from tagwire.spark.values.arrow_types import conformed, spark_type
from tagwire.values.options import value_settings
from tagwire.values.value_decoder import plan_decoder

from .conftest import not_run_without
from .peer import NotRunError
from .protobuf_messages import Messages
from .python_packages import fetched

SPARK: Final = "3.4.1"
SECONDS: Final = 250
PROGRAM: Final = Path(__file__).parent / "serializers" / "spark_protobuf.py"
pytestmark = pytest.mark.timeout(SECONDS + 50)

NOON: Final = datetime(2013, 7, 4, 12, 0, 0, 123456)
IMPORTED: Final = ("timestamp", "duration", "wrappers", "any")
BESIDE: Final = """
enum E { ZERO = 0; ONE = 1; TWO = 2; }
message In { int32 x = 1; optional string y = 2; }
"""


class Case(NamedTuple):
    """The fields of message M, and rows of it without what is absent."""

    fields: str
    rows: list[dict[str, Any]]
    syntax: str = "proto3"


def scalar(kind: str, *values: Any) -> Case:
    return Case(f"{kind} f = 1;", [{"f": value} for value in values])


CASES: Final[dict[str, Case]] = {
    **{kind: scalar(kind, 5, -(2**31), 2**31 - 1) for kind in ("int32", "sint32", "sfixed32")},
    **{kind: scalar(kind, 5, 2**31, 2**32 - 1) for kind in ("uint32", "fixed32")},
    **{kind: scalar(kind, 5, -(2**63), 2**63 - 1) for kind in ("int64", "sint64", "sfixed64")},
    **{kind: scalar(kind, 5, 2**63, 2**64 - 1) for kind in ("uint64", "fixed64")},
    "float": scalar("float", 1.5, -3.0e38),
    "double": scalar("double", 1.5, -1.0e308),
    "bool": scalar("bool", True),
    "string": scalar("string", "x", "é€𝄞"),
    "bytes": scalar("bytes", b"\x00\xff"),
    "enum": scalar("E", "ONE", "TWO"),
    "message": scalar("In", {"x": 1, "y": "z"}, {"x": 1}),
    "optional, at its default": scalar("optional int32", 0, 7),
    "optional message": scalar("optional In", {"x": 1}),
    "absent, with presence": Case("optional int32 f = 1; In m = 2; int32 g = 3;", [{"g": 1}]),
    "repeated numbers": scalar("repeated int64", [], [1, -2]),
    "repeated texts": scalar("repeated string", [], ["", "x"]),
    "repeated enums": scalar("repeated E", ["ZERO", "TWO"]),
    "repeated messages": scalar("repeated In", [{"x": 1, "y": "z"}, {"x": 2}]),
    "map of numbers": scalar("map<string, int64>", {}, {"a": 1, "b": 2}),
    "map of messages": scalar("map<int32, In>", {5: {"x": 1, "y": "z"}}),
    "oneof": Case("oneof o { int32 f = 1; string g = 2; }", [{"f": 5}, {"g": "x"}, {"f": 0}, {}]),
    "Timestamp": scalar("google.protobuf.Timestamp", NOON.replace(tzinfo=UTC)),
    "Duration": scalar("google.protobuf.Duration", timedelta(days=3, microseconds=5), -timedelta(seconds=5)),
    "wrapper": scalar("google.protobuf.Int64Value", {"value": 5}),
    "string wrapper": scalar("google.protobuf.StringValue", {"value": "x"}),
    "Any": scalar("google.protobuf.Any", {"type_url": "t/x", "value": b"\x01"}),
    "proto2, optional": Case("optional int32 f = 1; optional string g = 2;", [{"f": 0}, {"g": ""}, {}], "proto2"),
    "proto2, required": Case("required int32 f = 1;", [{"f": 0}, {"f": -5}], "proto2"),
    "proto2, repeated and packed": Case("repeated int32 f = 1 [packed = true];", [{"f": [1, 2, 300]}], "proto2"),
    "proto2, a default": Case("optional int32 f = 1 [default = 7]; optional int32 g = 2;", [{"g": 1}], "proto2"),
    "absent, without presence": Case("int32 f = 1; string g = 2; bool h = 3; E e = 4; int32 i = 5;", [{"i": 1}]),
}


def schema(case: Case) -> str:
    files = "".join(
        f'import "google/protobuf/{name}.proto";\n' for name in ("timestamp", "duration", "wrappers", "any")
    )
    beside = BESIDE if case.syntax == "proto3" else ""
    return f'syntax = "{case.syntax}"; package t;\n{files}message M {{ {case.fields} }}\n{beside}'


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> dict[str, tuple[Any, list[Any]] | str]:
    """By case, the type and the values that Spark gives, or the text of its error."""
    with not_run_without():
        packages = fetched(f"pyspark-{SPARK}", [f"pyspark=={SPARK}"])
        try:
            (jar,) = classpath(f"spark-protobuf-{SPARK}", [], [("org.apache.spark", "spark-protobuf_2.12", SPARK)])
        except MavenError as error:
            raise NotRunError(f"spark-protobuf {SPARK}: {error}") from None
    work = []
    for case in CASES.values():
        messages = Messages(schema(case), "t.M")
        work.append((messages.files, "M", [messages.body(row) for row in case.rows]))
    path = tmp_path_factory.mktemp("theirs") / "results"
    command = [sys.executable, str(PROGRAM), str(jar), str(path)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }
    done = subprocess.run(
        command, input=pickle.dumps(work), env=environment, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return dict(zip(CASES, pickle.loads(path.read_bytes())))


def ours(case: Case) -> tuple[Any, list[Any]]:
    """The type and the values that our column has in Spark."""
    text = schema(case)
    messages = Messages(text, "t.M")
    given = {"value.format": "protobuf", "value.schema": text, "value.message": "t.M"}
    decoder = plan_decoder(value_settings("value", given), None)
    found, bad = decoder.decode(pa.array([messages.body(row) for row in case.rows], pa.binary()))
    assert not bad.true_count
    kind = spark_type(decoder.type)
    shown, unfit = conformed(found, arrow_type(kind))
    assert unfit is None
    return nullable(kind.jsonValue()), naive(shown.to_pylist(maps_as_pydicts="strict"))


def nullable(kind: Any) -> Any:
    """A type's JSON with null allowed everywhere, and nothing said beside the types."""
    if isinstance(kind, dict):
        told = ("nullable", "containsNull", "valueContainsNull")
        return {name: name in told or nullable(each) for name, each in kind.items() if name != "metadata"}
    return [nullable(each) for each in kind] if isinstance(kind, list) else kind


def naive(value: Any) -> Any:
    """Times of UTC without saying so, as Spark's rows have them."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: naive(each) for name, each in value.items()}
    return [naive(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_a_type_of_protobuf_is_the_column_that_from_protobuf_makes_of_it(
    theirs: dict[str, tuple[Any, list[Any]] | str], name: str
) -> None:
    found = theirs[name]
    assert not isinstance(found, str), found
    assert ours(CASES[name]) == (nullable(json.loads(found[0])), found[1])

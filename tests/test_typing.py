"""What a type checker tells those who use tagwire: nothing of what is right, and where something is wrong."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .doc_blocks import ROOT, blocks

SOURCE = ROOT / "src"
STUB = SOURCE / "tagwire" / "kernel" / "record_objects.pyi"

RIGHT = """
from collections.abc import Sequence
from typing import assert_type

from tagwire import Field, Schema, message_class, messages
from tagwire.broker import Broker
from tagwire.client import EARLIEST, Admin, AtTimestamp, Client, Committed, NewTopic, Producer, Reader, TopicPartition
from tagwire.records import Record
from tagwire.rpc import api_of

properties = {"bootstrap.servers": "a:1", "linger.ms": 5}
client = Client("a:1", security_protocol="SSL", ssl_cafile="ca.pem", timeout=5)
Client(properties, client_id="shop")
Producer(["a:1", "b:1"], compression="zstd")
Admin({"bootstrap.servers": "a:1"})

admin = Admin(client)
admin.create_topics([NewTopic("t", 3, configs={"retention.ms": -1}), "u"])
admin.delete_topics("t")
admin.alter_configs({("topic", "t"): {"retention.ms": None, "preallocate": True}})
admin.alter_group_offsets("g", {"t": "latest", ("u", 0): 5})
assert_type(admin.group_offsets("g", ["t", ("u", 0)])[TopicPartition("u", 0)].offset, int)
client.list_offsets({"t": "latest", ("u", 0): AtTimestamp(5)})
client.list_offsets(dict.fromkeys([TopicPartition("t", 0)], EARLIEST))
assert_type(client.request(messages.MetadataRequest(topics=None)), messages.MetadataResponse)
client.request(api_of("request.json", "response.json").request(name="Ada")).greeting

Reader(client, "t")
Reader(client, ["t", ("u", 0)])
Reader(client, {"t": "earliest", ("u", 0): 7}, end_offsets={"t": "latest"})
Reader(client, dict.fromkeys([TopicPartition("t", 0)], Committed()), group="g", end_offsets="latest")
with Reader(client, {"t"}, stop_at_end=True) as reader:
    for record in reader.records():
        assert_type(record, Record)
        assert_type(record.key, bytes | None)
        assert_type(record.value, bytes | None)
        assert_type(record.offset, int)
        assert_type(record.headers, Sequence[tuple[int | str, bytes | None]])
        assert_type(record.get_header("trace-id"), bytes | None)

with Broker(num_partitions=3, fsync="never") as broker, Producer(broker.bootstrap) as producer:
    assert_type(producer.send("t", b"v", headers={"trace-id": b"1"}, timestamp=5).result().offset, int)
    with producer.transaction():
        producer.send_offsets({TopicPartition("t", 0): 5}, "g")

Foo = Schema(Field("baz", "int16"), optional_fields={1: Field("bar", "string", default="hello world")})
print(Foo(baz=7).baz, messages.request(3)(topics=None).topics)
print(api_of("request.json", "response.json").request(name="Ada").name)
assert_type(messages.MetadataRequest.decode(b"", 1).allow_auto_topic_creation, bool)
"""

# Each line, and what is said of it.
WRONG = [
    (
        'Client("a:1", securty_protocol="SSL")',
        'Unexpected keyword argument "securty_protocol" for "Client"; did you mean',
    ),
    ('Client("a:1", ssl_cafile=5)', 'Argument "ssl_cafile" to "Client" has incompatible type "int"'),
    ('Client("a:1", timeout="5")', 'Argument "timeout" to "Client" has incompatible type "str"'),
    ("Client(5)", 'Argument 1 to "Client" has incompatible type "int"'),
    ('Producer("a:1", compresion="zstd")', 'Unexpected keyword argument "compresion" for "Producer"; did you mean'),
    ('Producer("a:1", linger="5")', 'Argument "linger" to "Producer" has incompatible type "str"'),
    ('Reader("a:1", "t", stop_at_ends=True)', 'Unexpected keyword argument "stop_at_ends" for "Reader"; did you mean'),
    ('Reader("a:1", 5)', 'Argument 2 to "Reader" has incompatible type "int"'),
    ('Reader("a:1", {"t": "first"})', """Dict entry 0 has incompatible type "str": "Literal['first']\""""),
    ('Reader("a:1", "t", end_offsets=5)', 'Argument "end_offsets" to "Reader" has incompatible type'),
    ('Admin("a:1", timeout=5)', 'Unexpected keyword argument "timeout" for "Admin"'),
    ('Admin("a:1").create_topic("t")', '"Admin" has no attribute "create_topic"'),
    ('Admin("a:1").delete_topics(5)', 'Argument 1 to "delete_topics" of "Admin" has incompatible type "int"'),
    ('Admin("a:1").alter_configs({"t": {}})', "alter_configs"),
    ('NewTopic("t", partitions=3)', 'Unexpected keyword argument "partitions" for "NewTopic"; did you mean'),
    ('Producer("a:1").send("t", "text")', 'Argument 2 to "send" of "Producer" has incompatible type "str"'),
    ('Producer("a:1").send("t", b"", timestamp="now")', 'Argument "timestamp" to "send" of "Producer"'),
    ("Broker(num_partition=3)", 'Unexpected keyword argument "num_partition" for "Broker"; did you mean'),
    ('next(Reader("a:1", "t").records()).value.decode()', 'Item "None" of "bytes | None" has no attribute "decode"'),
    ('next(Reader("a:1", "t").records()).valeu', '"Record" has no attribute "valeu"'),
    ('Client("a:1").request(messages.MetadataRequest()).broker', '"MetadataResponse" has no attribute "broker"'),
    ("messages.MetadataRequest(topic=None)", 'Unexpected keyword argument "topic" for "MetadataRequest"'),
]


def checked(folder: Path, source: str) -> list[str]:
    """What mypy says of a program under --strict, "line: text" each. The package is as one that is installed."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    options = ("--strict", "--no-incremental", "--follow-imports=silent", "--config-file=", "--no-error-summary")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--hide-error-context", "program.py"],
        cwd=folder,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.stderr == ""
    return [line.removeprefix("program.py:") for line in done.stdout.splitlines() if ": note: " not in line]


@pytest.mark.long
def test_what_is_right_passes_strictly_and_values_have_types(tmp_path: Path) -> None:
    assert checked(tmp_path, RIGHT) == []


@pytest.mark.long
def test_what_is_wrong_is_told_where_it_is(tmp_path: Path) -> None:
    imports = "from tagwire import messages\nfrom tagwire.broker import Broker\nfrom tagwire.client import *\n"
    said = checked(tmp_path, imports + "".join(line + "\n" for line, _ in WRONG))
    found = {int(line.partition(":")[0]) - 4: line for line in said}
    assert [text for number, (text, _) in enumerate(WRONG) if number not in found] == []
    for number, (_, expected) in enumerate(WRONG):
        assert expected in found[number]
    assert len(said) == len(WRONG)


def test_the_classes_that_the_page_about_messages_makes_are_used_strictly(tmp_path: Path) -> None:
    page = ROOT / "docs" / "messages.md"
    said = checked(tmp_path, "\n".join(block.source for block in blocks(page)))
    assert [line for line in said if "pyarrow" not in line] == []


def signatures(path: Path) -> dict[str, list[str]]:
    """The arguments of every public function and method of a module; of a class, that it is there."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        body = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for each in body:
            if isinstance(each, ast.FunctionDef) and re.match(r"[a-z]|__(init|new|eq)__", each.name):
                arguments = [*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs]
                found[owner + each.name] = [argument.arg for argument in arguments]
    return found


def test_the_stub_of_records_says_what_their_source_does() -> None:
    source = signatures(STUB.with_suffix(".py"))
    said = signatures(STUB)
    assert {name: source.get(name) for name in said} == said
    assert {name for name in source if name.startswith("Record.")} == {name for name in said if name.startswith("Rec")}


@pytest.mark.parametrize("name", ["py.typed", "messages.pyi", "kernel/record_objects.pyi"])
def test_what_type_checkers_read_is_part_of_the_package(name: str) -> None:
    import tomllib

    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["tagwire"]
    assert any(Path(name).match(pattern) and name.count("/") == pattern.count("/") for pattern in data)

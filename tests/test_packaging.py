"""What the distribution declares: static, true of the imports, enough for each room; what is said where it lacks."""

from __future__ import annotations

import ast
import os
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tagwire.extras import EXTRAS, MissingExtraError

from .doc_blocks import ROOT, blocks

SOURCES = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {path.name.removesuffix(".py") for path in SOURCES.iterdir()}

# Which extras a module may count on, by how its name begins; no extra is what the core alone has.
ROOMS: dict[str, set[str]] = {
    "pyspark_": {"spark"},
    "tagwire.broker": {"broker", "jwks"},
    "tagwire.capture": {"audit"},
    "tagwire.cli": {"cli", "arrow", "spark"},
    "tagwire.client": {"arrow", "gssapi"},
    "tagwire.codec": {"arrow"},
    "tagwire.kernel": {"pure"},
    "tagwire.records": {"arrow"},
    "tagwire.spark": {"delta", "iceberg", "spark"},
    "tagwire.values": {"avro", "protobuf"},
}
# Found on the way: what pytest imports runs under pytest, file systems of other kinds are installed by who has them.
ELSEWHERE = {("tagwire.pytest_plugin", "pytest"), ("tagwire.spark.file_systems", "fsspec")}
BROUGHT = {"spark": {"numpy", "py4j"}, "iceberg": {"sqlalchemy"}}
"""Packages that a requirement of an extra itself requires."""
DISTRIBUTED_AS = {"google": "protobuf", "grpc_tools": "grpcio-tools"}
"""What is installed under another name than it is imported by."""


def requirements(extra: str = "") -> set[str]:
    """The packages of an extra, with those of the extras that it names; "" for the core's."""
    found = set()
    for line in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        name, others = re.fullmatch(r"([\w.-]+)(?:\[([\w,]+)\])?.*", line).groups()  # type: ignore[union-attr]
        if name == "tagwire":
            for other in others.split(","):
                found |= requirements(other)
        else:
            found.add(name.lower())
    return found | BROUGHT.get(extra, set())


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCES.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imported(node: ast.AST) -> Iterator[str]:
    """Top-level packages that a piece of source imports when it runs, not only for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.partition(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def test_what_it_needs_depends_on_no_environment_variable() -> None:
    assert "dynamic" not in PROJECT
    assert "requires" not in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_every_import_of_a_room_is_declared_by_the_core_or_by_an_extra_of_that_room() -> None:
    undeclared = []
    for name, path in modules():
        allowed = requirements()
        for room, extras in ROOMS.items():
            if name.startswith(room):
                allowed = allowed.union(*map(requirements, extras))
        for package in set(imported(ast.parse(path.read_text(encoding="utf-8")))) - sys.stdlib_module_names - OWN:
            if DISTRIBUTED_AS.get(package, package).lower() not in allowed and (name, package) not in ELSEWHERE:
                undeclared.append(f"{name} imports {package}")
    assert not undeclared


def unguarded(node: ast.AST) -> Iterator[str]:
    """As `imported`, but for what stands under `with Needs(...)`."""
    if isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith("Needs("):
        return
    yield from imported(node)


@pytest.mark.parametrize("room", ["broker", "capture", "client", "codec", "records"])
def test_a_package_of_an_extra_is_imported_where_its_absence_is_told(room: str) -> None:
    """At the top of a module of a room that the core alone runs; what a function imports, such a module was before."""
    packages = set().union(*EXTRAS.values())
    for name, path in modules():
        if name.startswith(f"tagwire.{room}"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                    assert not packages & set(unguarded(node)), name


def test_the_core_is_what_the_codec_and_the_client_import() -> None:
    """And the shadow module of kernels that are not compiled, where there are no others."""
    assert requirements() == {"cramjam", "crc32c", "cython", "xxhash"}
    (shadow,) = (line for line in PROJECT["dependencies"] if line.startswith("Cython"))
    assert shadow.endswith("; implementation_name != 'cpython' or python_version >= '3.15'")


def test_no_requirement_of_a_user_has_an_upper_bound_but_where_another_major_is_known_to_break() -> None:
    lines = {line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra]}
    bounded = {re.match(r"[\w-]+", line)[0] for line in [*lines, *PROJECT["dependencies"]] if "<" in line}  # type: ignore[index]
    assert bounded == {"Cython", "pandas", "pyspark"}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_that_an_error_names_brings_the_package(extra: str) -> None:
    assert {DISTRIBUTED_AS.get(package, package).lower() for package in EXTRAS[extra]} <= requirements(extra)
    if extra not in ("pure", "gssapi"):  # which is built against a library that not every system has
        assert requirements(extra) <= requirements("all")


def test_the_command_is_there_to_say_what_it_lacks() -> None:
    module, _, function = PROJECT["scripts"]["tagwire"].partition(":")
    assert callable(getattr(import_module(module), function))


# -- where packages are missing


def without(
    packages: str, code: str, *, source: Path = SOURCES, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `code` where the packages, separated by spaces, are not installed."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({packages.split()!r}))\n"
    settings = {name: value for name, value in os.environ.items() if name != "TAGWIRE_PURE"}
    settings["TAGWIRE_PURE"] = os.environ.get("TAGWIRE_PURE", "0")
    return subprocess.run(
        [sys.executable, "-c", hidden + code],
        env={**settings, "PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


ALL = "click fsspec msgspec numpy pandas pyarrow py4j pyspark rich typer uvloop"

CORE = """
import tagwire, tagwire.messages
from tagwire import records
from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader, TopicPartition
from tagwire.errors import TagwireError
from tagwire.extras import MissingExtraError

assert tagwire.messages.MetadataRequest.decode(tagwire.messages.MetadataRequest(topics=None).encode(12), 12)
assert [r.value for b in records.read(records.write([records.Record(b"k", b"v")])) for r in b.records()] == [b"v"]
with Broker() as broker:
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t", num_partitions=1)])
    with Producer(broker.bootstrap, compression="zstd") as producer:
        producer.send("t", b"v", key=b"k", headers=[("h", b"1")])
    with Reader(broker.bootstrap, {TopicPartition("t", 0): 0}, stop_at_end=True) as reader:
        assert [record.value for record in reader.records()] == [b"v"]
    with Reader(broker.bootstrap, {TopicPartition("t", 0): 0}, stop_at_end=True) as reader:
        try:
            list(reader)
        except MissingExtraError as error:
            assert isinstance(error, ImportError) and isinstance(error, TagwireError)
            print(error)
"""


def test_codec_records_client_and_broker_work_with_the_core_alone() -> None:
    ran = without(ALL, CORE)
    assert ran.stdout == "pyarrow is not installed: pip install 'tagwire[arrow]'\n", ran.stderr


def test_the_programs_of_the_readme_need_no_extra_but_those_of_spark() -> None:
    programs = [block.source for block in blocks(ROOT / "README.md") if block.kind == "program"]
    assert any("Reader(" in program for program in programs)
    for program in programs:
        ran = without(ALL, program)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


DECODING = """
import sys
from tagwire import records
from tagwire.kernel.checksum import checksum

assert checksum(b"123456789") == 0xE3069283
batch = records.write([records.Record(b"k", b"v")])
assert [record.value for found in records.read(batch) for record in found.records()] == [b"v"]
print("crc32c" in sys.modules and sys.modules["crc32c"])
"""


def test_where_no_package_makes_checksums_they_are_made_all_the_same() -> None:
    ran = without("crc32c", DECODING, TAGWIRE_PURE="1")
    assert ran.stdout == "None\n", ran.stderr


_PLANNED = (
    "import pyarrow; from tagwire.values.options import value_settings; "
    "from tagwire.values.value_decoder import plan_decoder; "
    "plan_decoder(value_settings('value', {'value.format': 'avro'"
)
_LIST = '{"type": "array", "items": "long"}'


@pytest.mark.parametrize(
    ("package", "extra", "code"),
    [
        ("pyarrow", "arrow", "from tagwire.records import to_arrow"),
        ("pyarrow", "arrow", "from tagwire.codec.arrow import schema_of"),
        ("pyarrow", "arrow", "import tagwire.client.producing.arrow_rows"),
        ("pyarrow", "arrow", "from tagwire.client import Producer; Producer('h:1', value_format='avro')"),
        ("urllib3", "registry", f"{_PLANNED}, 'schema.registry.url': 'http://h:1'}}), 't')"),
        ("numpy", "avro", f"{_PLANNED}, 'value.schema': 'long'}}), 't')"),
        ("polars", "avro", f"{_PLANNED}, 'value.schema': {_LIST!r}}}), 't').decode(pyarrow.array([bytes(1)] * 1000))"),
        ("google", "protobuf", "from tagwire.values.formats import body_format; body_format('protobuf')"),
        ("ptars", "protobuf", "from tagwire.values.formats import body_format; body_format('protobuf')"),
        ("grpc_tools", "protobuf", "from tagwire.values.formats import body_format; body_format('protobuf')"),
        ("msgspec", "audit", "import tagwire.capture.request_log"),
        ("pyspark", "spark", "import tagwire.spark.functions"),
        ("typer", "cli", "import sys; from tagwire.__main__ import main; sys.exit(main())"),
    ],
)
def test_what_is_missing_is_named_with_the_extra_that_brings_it(package: str, extra: str, code: str) -> None:
    ran = without(package, code)
    assert ran.stderr.strip().splitlines()[-1].endswith(f"{package} is not installed: pip install 'tagwire[{extra}]'")
    assert ran.returncode


def test_the_command_without_its_packages_is_one_line_and_not_a_traceback() -> None:
    ran = without("typer rich", "import sys; from tagwire.__main__ import main; sys.exit(main())")
    assert ran.returncode == 2
    assert re.fullmatch(r"tagwire: \w+ is not installed: pip install 'tagwire\[cli\]'\n", ran.stderr)


def test_an_error_about_an_extra_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(MissingExtraError("pyarrow", "arrow")))
    assert (error.name, error.extra, str(error)) == (
        "pyarrow",
        "arrow",
        "pyarrow is not installed: pip install 'tagwire[arrow]'",
    )


@pytest.fixture
def uncompiled(tmp_path: Path) -> Path:
    """The package as an interpreter finds it for which no kernel is compiled."""
    shutil.copytree(SOURCES / "tagwire", tmp_path / "tagwire", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


ENCODED = "from tagwire.messages import MetadataRequest as M; import tagwire.records; print(M(topics=None).encode(12))"


def test_kernels_that_nobody_asked_to_be_uncompiled_work_and_say_so_once(uncompiled: Path) -> None:
    ran = without("", ENCODED, source=uncompiled, TAGWIRE_PURE="0")
    assert ran.stdout.startswith("b'"), ran.stderr
    assert ran.stderr.count("tagwire's kernels are not compiled for this Python") == 1
    assert without("", ENCODED, source=uncompiled, TAGWIRE_PURE="1").stderr == ""


def test_kernels_that_are_not_compiled_name_what_they_need(uncompiled: Path) -> None:
    ran = without("cython", ENCODED, source=uncompiled, TAGWIRE_PURE="1")
    assert ran.stderr.strip().splitlines()[-1].endswith("cython is not installed: pip install 'tagwire[pure]'")

"""The text of `.proto` files as descriptors.

The text comes from a registry and may be anything, so protoc runs in a process of its own, with bounds on time, memory
and files, in a directory of its own, and names from the wire become paths only once they are known to be plain ones.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tagwire.errors import TagwireError, ValueSchemaError
from tagwire.extras import Needs
from tagwire.values.protobuf.known_files import KNOWN_FILES
from tagwire.values.protobuf.map_entries import mark, marked, restore
from tagwire.values.schemas import PROTOBUF, Schema

with Needs("protobuf"):
    import grpc_tools  # noqa: F401 - the process that compiles imports it: what lacks it says nothing about a schema
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError as _NotADescriptor

MAX_TEXT: Final = 2 << 20
"""Bytes of a schema and all that it refers to."""
MAX_REFERENCES: Final = 1000
MAX_SECONDS: Final = 30
"""Of a processor, to compile a schema."""
_PATIENCE: Final = 300.0
_MAX_MEMORY: Final = 1 << 30
_MAX_OUTPUT: Final = 64 << 20
_MAX_REPORT: Final = 4096

_NO_PROTOC: Final = 97
"""What the process ends with where it cannot import protoc."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][\w.+-]*(?:/[A-Za-z0-9_][\w.+-]*)*", re.ASCII)
_MAX_NAME: Final = 255
_PLACE: Final = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<reason>.*)$")

# What the process does with the name of a file in its directory. `-P` and absolute paths keep that directory, whose
# files the schema names, out of where Python looks for modules.
_PROTOC: Final = f"""
import os, sys
try:
    import resource
    seconds = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    for limit, value in ("AS", {_MAX_MEMORY}), ("FSIZE", {_MAX_OUTPUT}), ("CORE", 0):
        resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (value, value))
except (ImportError, ValueError, OSError):
    pass
try:
    import grpc_tools
    from grpc_tools import protoc
except ImportError as error:
    sys.stderr.write(str(error))
    sys.exit({_NO_PROTOC})
included = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
options = ["-Iin", "-I" + included, "--include_imports", "--descriptor_set_out=out"]
sys.exit(protoc.main(["protoc", *options, sys.argv[1]]))
"""


def compiled(schema: Schema) -> tuple[bytes, str]:
    """A serialized FileDescriptorSet, in which each file comes after those that it imports, and the name of the
    schema's own file in it. Kept for the schemas of late.

    Args:
        schema: the text of a `.proto` file, or a FileDescriptorProto in base64, as registries serve with
            `format=serialized`; what it refers to likewise.

    Raises:
        ValueSchemaError: it is too large, refers to names that are no plain paths, or does not compile; says the line
            and the reason.
        TagwireError: protoc could not be run, which says nothing about the schema.
    """
    found = _compiled(schema)
    if isinstance(found, str):
        raise ValueSchemaError(found)
    return found


@lru_cache(maxsize=128)
def _compiled(schema: Schema) -> tuple[bytes, str] | str:
    """As `compiled`; a refusal is a text, so that what does not compile is not compiled for every value."""
    try:
        if schema.schema_type != PROTOBUF:
            raise ValueSchemaError(f"a schema of type {schema.schema_type} is not Protobuf's")
        files = _files(schema)
        own = "schema.proto"
        while own in files:
            own = f"the_{own}"
        serialized = _descriptor(schema.text)
        if serialized is not None:
            return _linked(serialized, files)
        known = KNOWN_FILES if any("confluent/" in text for text in (schema.text, *files.values())) else {}
        texts = {**files, own: schema.text}
        found = _by_protoc(own, {**known, **{name: marked(text) for name, text in texts.items()}})
        if any("map_entry" in text for text in texts.values()):
            described = FileDescriptorSet.FromString(found)
            restore(described.file)
            found = described.SerializeToString()
        return found, own
    except ValueSchemaError as error:
        return str(error)


def _files(schema: Schema) -> dict[str, str]:
    """What a schema refers to, by name. Each is met once, however many refer to it."""
    files: dict[str, str] = {}
    total = len(schema.text.encode("utf-8", "replace"))
    waiting: list[tuple[str, Schema]] = list(schema.references)
    while waiting:
        name, referred = waiting.pop()
        if name in files:
            if files[name] != referred.text:
                raise ValueSchemaError(f"two different schemas are referred to as {_short(name)}")
            continue
        if not _PLAIN_NAME.fullmatch(name) or len(name) > _MAX_NAME:
            raise ValueSchemaError(
                f"a reference is named {_short(name)}; names of .proto files are relative paths of letters, digits, "
                "dots, hyphens and underscores"
            )
        files[name] = referred.text
        total += len(referred.text.encode("utf-8", "replace"))
        if len(files) > MAX_REFERENCES:
            raise ValueSchemaError(f"the schema refers to more than {MAX_REFERENCES} others")
        if total > MAX_TEXT:
            break
        waiting.extend(referred.references)
    if total > MAX_TEXT:
        raise ValueSchemaError(f"the schema has more than {MAX_TEXT} bytes with all that it refers to")
    for name in files:
        if any(other.startswith(f"{name}/") for other in files):
            raise ValueSchemaError(f"{_short(name)} is referred to as a file and as a directory")
    return files


def _descriptor(text: str) -> FileDescriptorProto | None:
    """A FileDescriptorProto in base64; None for anything else."""
    if not re.fullmatch(r"[A-Za-z0-9+/\s]+=*\s*", text) or len(text) < 8:
        return None
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text))
    except (binascii.Error, ValueError, _NotADescriptor):
        return None
    return found if found.name or found.message_type else None


def _linked(own: FileDescriptorProto, texts: dict[str, str]) -> tuple[bytes, str]:
    """A serialized descriptor with those that it imports, which are serialized likewise or are Protobuf's own."""
    from importlib import import_module

    own.name = own.name or "schema.proto"
    linked = FileDescriptorSet()
    met: set[str] = set()

    def take(file: FileDescriptorProto, within: tuple[str, ...]) -> None:
        for name in file.dependency:
            if name in within:
                raise ValueSchemaError(f"{_short(file.name)} imports {_short(name)}, which imports it")
            if name in met:
                continue
            if len(within) > 100:
                raise ValueSchemaError(f"{_short(file.name)}: more than 100 imports, each within another")
            take(imported(name, file.name), (*within, name))
        met.add(file.name)
        mark(file)
        linked.file.append(file)

    def imported(name: str, importer: str) -> FileDescriptorProto:
        if name in texts:
            found = _descriptor(texts[name])
            if found is None:
                raise ValueSchemaError(f"{_short(name)} is text, and {_short(importer)}, which imports it, is not")
            found.name = name
            return found
        if known := re.fullmatch(r"google/(protobuf|type)/(\w+)\.proto", name):
            try:
                module = import_module(f"google.{known[1]}.{known[2]}_pb2")
            except ModuleNotFoundError:
                pass
            else:
                return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        if name in KNOWN_FILES:
            return FileDescriptorSet.FromString(_by_protoc(name, dict(KNOWN_FILES))).file[-1]
        raise ValueSchemaError(f"{_short(importer)} imports {_short(name)}, which the schema does not refer to")

    take(own, (own.name,))
    restore(linked.file)
    return linked.SerializeToString(), own.name


def _by_protoc(own: str, files: dict[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tagwire-proto-") as folder:
        inside = Path(folder, "in")
        for name, text in files.items():
            path = inside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        _with_common_types(inside)
        report = Path(folder, "report")
        try:
            with report.open("wb") as errors:
                code = subprocess.run(
                    [sys.executable, "-P", "-c", _PROTOC, own, str(MAX_SECONDS)],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    timeout=_PATIENCE,
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
                    },
                    check=False,
                ).returncode
        except (subprocess.TimeoutExpired, OSError) as error:
            raise TagwireError(f"protoc could not be run to compile a schema: {error}") from None
        if code == 0:
            return Path(folder, "out").read_bytes()
        if code == -getattr(signal, "SIGKILL", 0):
            raise TagwireError("protoc was killed while it compiled a schema, perhaps for want of memory")
        with report.open("rb") as errors:
            told = errors.read(_MAX_REPORT).decode("utf-8", "replace")
        if code == _NO_PROTOC:
            raise TagwireError(f"protoc could not be run to compile a schema: {_last_line(told)}")
        raise ValueSchemaError(f"the schema does not compile: {_reason(told, own, code)}")


def _with_common_types(inside: Path) -> None:
    """Google's common types, which registries have imported without a reference, beside what the schema refers to."""
    found = find_spec("google.type")
    if found is None or not found.submodule_search_locations:
        return
    target = inside / "google" / "type"
    with suppress(OSError):  # the schema brings its own, or this system has no links
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(Path(next(iter(found.submodule_search_locations))).absolute(), target_is_directory=True)


def _reason(told: str, own: str, code: int) -> str:
    """The first error that protoc tells of, with its file and line."""
    for place in _problems(told):
        file = place["file"].removeprefix("in/")
        where = "" if file == own else f"{_short(file)}, "
        return f"{where}line {place['line']}, column {place['column']}: {place['reason'][:300]}"
    if "MemoryError" in told or "bad_alloc" in told:
        return f"it takes more than {_MAX_MEMORY} bytes of memory"
    if code == -getattr(signal, "SIGXCPU", 0):
        return f"it takes more than {MAX_SECONDS} s"
    return _last_line(told) or f"protoc ended with code {code}"


def _last_line(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _problems(told: str) -> Iterator[dict[str, str]]:
    for line in told.splitlines():
        found = _PLACE.match(line)
        if found and not found["reason"].startswith("warning:"):
            yield found.groupdict()


def _short(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:100]}...")

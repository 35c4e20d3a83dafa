"""Messages of a Protobuf schema by Protobuf's own library and compiler."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc_tools")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


class Messages:
    """The class of one message.

    Attributes:
        files: a serialized FileDescriptorSet of the schema and all that it imports.
    """

    def __init__(self, text: str, name: str, file: str = "cases.proto") -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, file).write_text(text, encoding="utf-8")
            command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--include_imports"]
            subprocess.run([*command, "--descriptor_set_out=out", file], cwd=folder, check=True, timeout=60)
            self.files = Path(folder, "out").read_bytes()
        pool = descriptor_pool.DescriptorPool()
        for each in descriptor_pb2.FileDescriptorSet.FromString(self.files).file:
            pool.Add(each)
        self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def body(self, row: Mapping[str, Any]) -> bytes:
        """The message of a row; what is None is left out, at any depth."""
        body: bytes = self._class(**_present(row)).SerializeToString()
        return body

    def parsed(self, body: bytes) -> Any:
        return self._class.FromString(body)


def _present(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _present(each) for name, each in value.items() if each is not None}
    return [_present(each) for each in value] if isinstance(value, list) else value

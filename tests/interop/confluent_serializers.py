"""Runs confluent-kafka's serializers and deserializers, which need packages that this environment lacks."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .python_packages import fetched

VERSION: Final = "2.16.0"
PACKAGES: Final = (
    f"confluent-kafka[avro,json,protobuf,schemaregistry]=={VERSION}",
    "googleapis-common-protos",
    "protobuf",
)
SECONDS: Final = 120
_PROGRAM: Final = Path(__file__).parent / "serializers" / "confluent.py"

Record = tuple[bytes | None, list[tuple[str, bytes]]]
"""A value and the headers that its serializer added."""


class ConfluentError(AssertionError):
    """The peer ended a work with an error, which the text is."""


class Confluent:
    """The serializers of confluent-kafka.

    Raises NotRunError: the packages are not to be had.
    """

    def __init__(self) -> None:
        self._packages = fetched(f"confluent-serializers-{VERSION}", PACKAGES)

    def serialize(self, values: Sequence[Any], **work: Any) -> list[Record]:
        """The values as the peer writes them; `work`: see serializers/confluent.py.

        Raises ConfluentError.
        """
        return self._run({"what": "serialize", "values": list(values), **work})

    def deserialize(self, records: Sequence[Record], **work: Any) -> list[Any]:
        """The values as the peer reads them.

        Raises ConfluentError.
        """
        return self._run({"what": "deserialize", "values": list(records), **work})

    def _run(self, work: dict[str, Any]) -> list[Any]:
        environment = {**os.environ, "PYTHONPATH": str(self._packages)}
        command = [sys.executable, str(_PROGRAM)]
        done = subprocess.run(
            command, input=pickle.dumps([work]), env=environment, capture_output=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        (result,) = pickle.loads(done.stdout)
        if isinstance(result, str):
            raise ConfluentError(result)
        assert isinstance(result, list)
        return result

"""Files in object stores, written by delta-rs' own clients: what opens a table takes its files, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, ClassVar

from tagwire.extras import Needs

_LONGEST = 300
_SECRET = re.compile("key|secret|token|password|credential|sas|signature|connection", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_FRAME = re.compile(r"\s+\d+: ")


def told(error: Exception, options: Mapping[str, str]) -> str:
    """What an error of delta-rs says, with its causes, without the frames of Rust and without secrets of `options`."""
    lines = _COLOUR.sub("", str(error)).splitlines() or [type(error).__name__]
    lines = list(takewhile(lambda line: not _FRAME.match(line), lines))
    said = ": ".join(text for line in lines if (text := line.strip().removeprefix("↳").strip()))
    secrets = {value for name, value in options.items() if value and _SECRET.search(name)}
    for secret in sorted(secrets, key=len, reverse=True):  # one may begin with another
        said = said.replace(secret, "...")
    return _USER.sub("...", said)[:_LONGEST]


@dataclass(frozen=True)
class ObjectStoreDestination:
    """Below a URL such as s3://bucket/table. An object is there when its file is closed, whole, or not at all.

    Attributes:
        options: delta-rs' `storage_options`; kept out of the repr.
    """

    place: str
    options: Mapping[str, str] = field(repr=False)
    statistics: ClassVar[bool] = True
    values_in_paths: ClassVar[bool] = False

    def create(self, path: str) -> Any:
        with Needs("delta"):
            from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        return PyFileSystem(DeltaStorageHandler(self.place, dict(self.options))).open_output_stream(path)

    def close(self, path: str, file: Any) -> None:
        file.close()

    def remove(self, path: str, file: Any) -> None:
        """Ends the upload. Should an object come of it all the same, no commit names it, and a vacuum removes it."""
        with suppress(OSError):
            file.close()

    def told(self, error: OSError) -> str:
        return told(error, self.options)

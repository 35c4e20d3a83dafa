"""Files below a location that only pyiceberg's own clients reach: what opens a table takes its files, too."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tagwire.extras import Needs
from tagwire.spark.tables.data_files import LocalDestination
from tagwire.spark.tables.object_stores import told
from tagwire.spark.tables.table_format import Destination


@dataclass(frozen=True)
class IcebergDestination:
    """A location such as s3://bucket/table/data.

    Attributes:
        properties: of the table's `FileIO`, credentials among them; kept out of the repr.
    """

    place: str
    properties: Mapping[str, str] = field(repr=False)
    statistics: ClassVar[bool] = False
    values_in_paths: ClassVar[bool] = False

    def create(self, path: str) -> Any:
        with Needs("iceberg"):
            from pyiceberg.io import load_file_io

        at = f"{self.place}/{path}"
        return load_file_io(dict(self.properties), at).new_output(at).create()

    def close(self, path: str, file: Any) -> None:
        file.close()

    def remove(self, path: str, file: Any) -> None:
        """Ends the upload. Should an object come of it all the same, no snapshot names it."""
        with suppress(OSError):
            file.close()

    def told(self, error: OSError) -> str:
        return told(error, self.properties)


def destination_of(table: Any) -> Destination:
    """Where tasks write the files of a `pyiceberg.table.Table`."""
    place = table.location_provider().data_path
    local = local_path(place)
    return IcebergDestination(place, dict(table.io.properties)) if local is None else LocalDestination(local, False)


def local_path(location: str) -> Path | None:
    """The path of a location on this machine; None where it is elsewhere."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(location.removeprefix("file:").removeprefix("//") if parts.scheme else location)

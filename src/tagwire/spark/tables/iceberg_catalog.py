"""The catalog that an Iceberg table is in: one of the user's, or an SQLite file beside the table."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tagwire.errors import ConfigError, StorageError
from tagwire.extras import Needs

FILE: Final = "_catalog.db"
"""The embedded catalog, in the table's directory."""

NAME: Final = "tagwire"
"""How the embedded catalog is called, and one that is given by its properties alone."""

NAMESPACE: Final = "default"

_SECRET = re.compile("key|secret|token|password|credential|sas|signature|auth|user", re.IGNORECASE)
_UNSAFE = re.compile(r"\W+", re.ASCII)
_LONGEST = 300
_TOO_MANY, _OF_SERVERS = 429, 500
_AWS_THROTTLES: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes of AWS for more requests than an account may send, which mostly come with the status 400."""


@dataclass(frozen=True)
class CatalogSettings:
    """Which table of which catalog.

    Attributes:
        name: as pyiceberg's own configuration has it; None is the embedded one, unless there are properties.
        properties: pyiceberg's, over those of its configuration; in no repr, since there are secrets among them.
        table: `NAMESPACE.NAME`; None is `default` and the name of the directory, or of the topic.
    """

    name: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    table: str | None = None

    @property
    def embedded(self) -> bool:
        return self.name is None and not self.properties

    def check(self) -> None:
        """Raises ConfigError: the table has no namespace, or an empty name."""
        if self.table is not None and (not all(parts := self.table.split(".")) or len(parts) < 2):
            raise ConfigError(f"catalog_table={self.table!r}: needs NAMESPACE.NAME")

    def identifier(self, named: str) -> str:
        """The table's identifier; where it is not given, after the topic or directory `named`."""
        return self.table or f"{NAMESPACE}.{_UNSAFE.sub('_', named).strip('_') or 'table'}"


class IcebergCatalog:
    """A catalog that is opened when it is first asked."""

    def __init__(self, settings: CatalogSettings, directory: Path | None) -> None:
        """`directory`: of the table, where the catalog is the embedded one."""
        self._file = None if directory is None else directory / FILE
        self._name = settings.name or NAME
        self._given = dict(settings.properties)
        self._opened: Any = None
        if directory is not None:
            if set(str(directory)) & set("?#"):
                raise StorageError(f"{directory}: an Iceberg table cannot stand in a path with ? or #")
            self._given = {"type": "sql", "uri": f"sqlite:///{self._file}", "warehouse": f"file://{directory}"}

    @property
    def there(self) -> bool:
        """Whether there is something to ask: an embedded catalog is made by the first table."""
        return self._file is None or self._file.is_file()

    def opened(self) -> Any:
        """A `pyiceberg.catalog.Catalog`."""
        if self._opened is None:
            with Needs("iceberg"):
                from pyiceberg.catalog import load_catalog
            self._opened = load_catalog(self._name, **self._given)
        return self._opened

    def tables(self) -> list[str]:
        """Identifiers of the embedded catalog's tables."""
        catalog = self.opened()
        return sorted(".".join(table) for space in catalog.list_namespaces() for table in catalog.list_tables(space))

    def is_away(self, error: BaseException) -> bool:
        """Whether an error says that the catalog, or the store of its tables, may do later what it has not done."""
        from pyiceberg import exceptions
        from sqlalchemy.exc import OperationalError  # a disk that is full, a database that is away

        of_rest = (
            exceptions.ServerError,
            exceptions.ServiceUnavailableError,  # 503
            exceptions.TooManyRequestsError,
            exceptions.CommitStateUnknownException,  # 500, 502 or 504 to a commit; what it did is looked at
        )
        return isinstance(error, (OSError, OperationalError, *of_rest)) or _is_away_in_aws(error)

    def said(self, error: BaseException) -> str:
        """What an error says in one line, without secrets."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[0] if lines else type(error).__name__
        for secret in sorted(self._secrets(), key=len, reverse=True):
            said = said.replace(secret, "...")
        return said[:_LONGEST]

    def _secrets(self) -> set[str]:
        properties = {**self._configured(), **self._given}
        if self._opened is not None:
            properties = {**properties, **self._opened.properties}
        found = {str(value) for name, value in properties.items() if _SECRET.search(name)}
        for name, value in properties.items():
            if "://" in str(value):
                found.update(filter(None, (_password(str(value)),)))
            if name == "credential":
                found.update(str(value).split(":"))
        return {secret for secret in found if secret}

    def _configured(self) -> dict[str, Any]:
        from pyiceberg.utils.config import Config

        try:
            return dict(Config().get_catalog_config(self._name) or {})
        except ValueError:
            return {}


def _is_away_in_aws(error: BaseException) -> bool:
    """Whether Glue cannot be reached, or has too much to do, as botocore says it, which only such a catalog needs."""
    botocore = sys.modules.get("botocore.exceptions")
    if botocore is None:
        return False
    if not isinstance(error, botocore.ClientError):
        return isinstance(error, (botocore.ConnectionError, botocore.HTTPClientError))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = error.response.get("Error", {}).get("Code")
    return status == _TOO_MANY or status >= _OF_SERVERS or code in _AWS_THROTTLES


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None

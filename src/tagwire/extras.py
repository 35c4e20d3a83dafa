"""Packages that only some rooms need: what brings each, and the error where it is missing."""

from __future__ import annotations

from types import TracebackType
from typing import Final

from tagwire.errors import TagwireError

EXTRAS: Final = {
    "arrow": ("pyarrow",),
    "cli": ("rich", "typer"),
    "gssapi": ("gssapi",),
    "audit": ("msgspec",),
    "spark": ("pyspark", "pandas", "prometheus_client"),
    "registry": ("urllib3",),
    "avro": ("numpy", "polars"),
    "protobuf": ("google", "grpc_tools", "ptars"),
    "delta": ("deltalake",),
    "iceberg": ("pyiceberg",),
    "jwks": ("cryptography",),
    "pure": ("cython",),
}
"""The extras of pyproject.toml by name, each with the packages that are imported under it."""


class MissingExtraError(TagwireError, ModuleNotFoundError):
    """A package is not installed that what was asked for needs. The text says how to install it.

    Attributes:
        name: the package, as it is imported.
        extra: the extra of tagwire that brings it.
    """

    def __init__(self, name: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{name} is not installed: pip install 'tagwire[{extra}]'")
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.name, self.extra)


class Needs:
    """`with Needs("arrow"): import pyarrow` raises MissingExtraError where the package is not installed."""

    def __init__(self, extra: str) -> None:
        self._extra = extra

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ModuleNotFoundError) and not isinstance(error, MissingExtraError):
            missing = (error.name or "").partition(".")[0]
            if missing in EXTRAS[self._extra]:
                raise MissingExtraError(missing, self._extra) from None

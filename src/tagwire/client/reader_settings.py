"""The options of a reader, checked one by one: how it fetches, and what it makes of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Final, TypedDict

from tagwire.client import arguments
from tagwire.client.config import MAX_FETCH_BYTES, FetchSettings, at_least, isolation_of, offset_reset_of, whole_up_to
from tagwire.client.option_types import of_type
from tagwire.client.property_values import MAX_INT, wrong
from tagwire.client.security import SecurityOptions
from tagwire.client.value_formats import FormatOptions, ValueFormats, value_formats
from tagwire.errors import no_such_option
from tagwire.records import HeaderRegister
from tagwire.records.columns import check_columns
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.memory_records import check_dialect

COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

# Rows of a batch: enough that its fixed costs do not show, few enough that it stays in the caches.
BATCH_ROWS: Final = 32_768
BATCH_BYTES: Final = 16 * 1024 * 1024

# What the kernels count with.
_MOST_COUNTED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DecodingSettings:
    """What a reader makes of records: see `tagwire.client.Reader`. Sizes in bytes."""

    columns: Sequence[str] = COLUMNS
    timestamp_unit: str = "ms"
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES
    max_decompressed: int = MAX_DECOMPRESSED
    dialect: str | None = None
    register: HeaderRegister | None = None
    formats: ValueFormats | None = None


class FetchOptions(TypedDict, total=False):
    """`FetchSettings` as keyword options of a reader; None is as the client is set up."""

    max_wait_ms: int | None
    min_bytes: int | None
    max_bytes: int | None
    max_partition_bytes: int | None
    isolation: str | None
    offset_reset: str | None
    group: str | None
    rack: str | None
    metadata_max_age: float | None


class ReaderOptions(FetchOptions, FormatOptions, SecurityOptions, total=False):
    """`FetchOptions`, `FormatOptions`, `DecodingSettings` and those of the client that it makes, as keyword options of
    a reader."""

    columns: str | Sequence[str]
    timestamp_unit: str
    batch_rows: int
    batch_bytes: int
    max_decompressed: int
    dialect: str | None
    register: HeaderRegister | None
    bad_values: str | None


_LOWEST: Final = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1, "max_partition_bytes": 1, "metadata_max_age": 0}

# What a request has room for; and no connection takes a response that is much larger.
_HIGHEST: Final = {
    "max_wait_ms": MAX_INT,
    "min_bytes": MAX_INT,
    "max_bytes": MAX_FETCH_BYTES,
    "max_partition_bytes": MAX_FETCH_BYTES,
}


def settings_of(
    defaults: FetchSettings, options: Mapping[str, Any], beside: Sequence[str] = ()
) -> tuple[FetchSettings, DecodingSettings]:
    """`defaults`, and what decoding does by itself, with `options`.

    Args:
        options: as `ReaderOptions`. beside: other options that stand where these do, of which one may be meant.

    Raises:
        ConfigError: an option is wrong, or there is none of its name.
    """
    for name in options:
        if name not in ReaderOptions.__annotations__:
            raise no_such_option(name, (*beside, *ReaderOptions.__annotations__))
    decoding = _decoding_settings(
        {
            name: options[name]
            for name in DecodingSettings.__match_args__
            if name in options and (name == "columns" or options[name] is not None)
        }
    )
    return (
        _fetch_settings(defaults, {name: options.get(name) for name in FetchOptions.__annotations__}),
        replace(decoding, formats=value_formats(options)),
    )


def _fetch_settings(defaults: FetchSettings, given: dict[str, Any]) -> FetchSettings:
    found = {name: value for name, value in given.items() if value is not None}
    for name, lowest in _LOWEST.items():
        if name in found:
            found[name] = at_least(name, found[name], lowest)
    if found.get("min_bytes", 0) > MAX_INT:
        raise wrong("min_bytes", str(found["min_bytes"]), f"at most {MAX_INT}")
    for name, highest in _HIGHEST.items():
        if name in found:
            found[name] = whole_up_to(name, found[name], highest)
    if "isolation" in found:
        isolation_of(found["isolation"])
    if "offset_reset" in found:
        offset_reset_of(found["offset_reset"])
    if "group" in found:
        arguments.name("group", found["group"])
    of_type("rack", found.get("rack"), str, 'the rack\'s name as text, such as "eu-west-1a"')
    return replace(defaults, **found)


def _decoding_settings(given: dict[str, Any]) -> DecodingSettings:
    check_dialect(given.get("dialect"), given.get("register"))
    of_type(
        "register",
        given.get("register"),
        HeaderRegister,
        'a HeaderRegister, such as HeaderRegister.load("headers.toml")',
    )
    of_type("max_decompressed", given.get("max_decompressed"), Integral, "a number of bytes")
    if "max_decompressed" in given:
        given["max_decompressed"] = int(given["max_decompressed"])
    if "columns" in given:
        given["columns"] = tuple(arguments.names("columns", given["columns"]))
    for name in ("batch_rows", "batch_bytes"):
        if name in given:
            given[name] = whole_up_to(name, at_least(name, given[name], 1), _MOST_COUNTED)
    settings = DecodingSettings(**given)
    check_columns(settings.columns, settings.timestamp_unit)
    return settings

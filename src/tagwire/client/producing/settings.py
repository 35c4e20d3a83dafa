"""The options of a producer, checked one by one and together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict

from tagwire.client.config import MAX_INT, ProduceSettings, acks_of, at_least, compression_of, of_type, wrong
from tagwire.errors import ConfigError, no_such_option
from tagwire.records.memory_records import check_dialect


class ProduceOptions(TypedDict, total=False):
    """The keyword options of a `Producer`, for its signature. None is as the client is set up."""

    acks: str | int | None
    idempotence: bool | None
    compression: str | None
    topic_compression: Mapping[str, str] | None
    batch_bytes: int | None
    linger: float | None
    buffer_memory: int | None
    max_block: float | None
    retries: int | None
    timeout: float | None
    transactional_id: str | None
    transaction_timeout: float | None
    dialect: str | None


_LOWEST: Final = {
    "batch_bytes": 1,
    "linger": 0,
    "buffer_memory": 1,
    "max_block": 0,
    "retries": 0,
    "timeout": 0,
    "transaction_timeout": 0.001,
}

_ALL: Final = -1


def settings_of(defaults: ProduceSettings, given: ProduceOptions, beside: Iterable[str] = ()) -> ProduceSettings:
    """`defaults` with the options that are `given` and not None.

    Args:
        beside: other options that stand where these do, one of which may be meant by an unknown name.

    Raises:
        ConfigError: there is no such option, one is wrong, or contradicts another; the text names it.
    """
    for name in given:
        if name not in ProduceOptions.__annotations__:
            raise no_such_option(name, (*ProduceOptions.__annotations__, *beside))
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    of_type("topic_compression", options.get("topic_compression"), Mapping, 'a dict by topic, {"orders": "zstd"}')
    of_type("transactional_id", options.get("transactional_id"), str, "text")
    of_type("idempotence", options.get("idempotence"), bool, "True or False")
    for name, lowest in _LOWEST.items():
        if name in options:
            options[name] = at_least(name, options[name], lowest)
    if options.get("transaction_timeout", 0.0) > MAX_INT / 1000:
        raise wrong("transaction_timeout", options["transaction_timeout"], f"at most {MAX_INT // 1000} seconds")
    if "acks" in options:
        options["acks"] = acks_of(options["acks"])
    if "compression" in options:
        compression_of(options["compression"])
    for topic, compression in options.get("topic_compression", {}).items():
        compression_of(compression, f"topic_compression of {topic!r}")
    settings = replace(defaults, **options)
    if settings.transactional_id is not None:
        _check_transactional(settings)
    if settings.dialect is not None:
        settings = _of_dialect(settings)
    is_idempotent = settings.acks == _ALL if settings.idempotence is None else settings.idempotence
    if is_idempotent and settings.acks != _ALL:
        raise ConfigError(f"acks={settings.acks}: a producer with idempotence needs acks=all; say idempotence=False")
    return replace(settings, idempotence=is_idempotent)


def _of_dialect(settings: ProduceSettings) -> ProduceSettings:
    """Message sets have no room for producer ids and sequence numbers."""
    check_dialect(settings.dialect)
    if settings.idempotence or settings.transactional_id is not None:
        raise ConfigError(
            f"dialect {settings.dialect}: it has no room for sequence numbers, so neither idempotence nor transactions"
        )
    return replace(settings, idempotence=False)


def _check_transactional(settings: ProduceSettings) -> None:
    if not settings.transactional_id:
        raise ConfigError("transactional_id='': allowed is any name but an empty one")
    if settings.idempotence is False:
        raise ConfigError("idempotence=False: a producer with a transactional_id needs it")
    if settings.acks != _ALL:
        raise ConfigError(f"acks={settings.acks}: a producer with a transactional_id needs acks=all")

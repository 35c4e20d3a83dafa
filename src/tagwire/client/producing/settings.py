"""The options of a producer, checked one by one and together: how it sends, and what it makes of records before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from tagwire.client import arguments
from tagwire.client.config import ProduceSettings, acks_of, at_least, compression_of
from tagwire.client.option_types import of_type
from tagwire.client.producing.partitioners import Partitioner, check_partitioner
from tagwire.client.property_values import MAX_INT, wrong
from tagwire.client.security import SecurityOptions
from tagwire.client.value_formats import FormatOptions, ValueFormats, value_formats
from tagwire.errors import ConfigError, no_such_option
from tagwire.records import HeaderRegister, HeaderSerdes, Record
from tagwire.records.compression import codec_id
from tagwire.records.interceptors import ProducerInterceptor, before_encoding
from tagwire.records.memory_records import check_dialect


@dataclass(frozen=True, slots=True)
class EncodingSettings:
    """What happens to records before they are encoded: see `tagwire.client.Producer`. `formats`, where there are any,
    come after all else."""

    interceptors: Sequence[ProducerInterceptor] = ()
    header_serdes: HeaderSerdes | None = None
    register: HeaderRegister | None = None
    formats: ValueFormats | None = None

    @property
    def changes_records(self) -> bool:
        """Whether a record may be encoded as another than it was sent as."""
        return bool(self.interceptors) or self.header_serdes is not None or self.register is not None

    def prepared(self, topic: str, record: Record) -> Record:
        """What is to be encoded, after the interceptors and the headers' serializers."""
        record = before_encoding(topic, record, self.interceptors)
        if self.header_serdes is not None:
            record = record.replace(headers=self.header_serdes.serialized(record.headers))
        if self.register is not None:
            record = record.replace(headers=self.register.to_ints(record.headers, of=f"record for {topic}"))
        return record


class ProduceOptions(TypedDict, total=False):
    """`ProduceSettings` as keyword options of a producer; None is as the client is set up."""

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
    compression_level: int | None
    buffer_records: int | None
    block_on_buffer_full: bool | None
    partitioner: str | Partitioner | None
    ignore_keys: bool | None
    adaptive_partitioning: bool | None
    availability_timeout: float | None
    metadata_max_age: float | None
    metadata_max_idle: float | None


class ProducerOptions(ProduceOptions, FormatOptions, SecurityOptions, total=False):
    """`ProduceOptions`, `FormatOptions`, `EncodingSettings` and those of the client that it makes, as keyword options
    of a producer."""

    interceptors: Sequence[ProducerInterceptor]
    header_serdes: HeaderSerdes | None
    register: HeaderRegister | None


_BEFORE_ENCODING: Final = ("interceptors", "header_serdes", "register")

_LOWEST: Final = {
    "batch_bytes": 1,
    "linger": 0,
    "buffer_memory": 1,
    "max_block": 0,
    "retries": 0,
    "timeout": 0,
    "transaction_timeout": 0.001,
    "buffer_records": 1,
    "availability_timeout": 0,
    "metadata_max_age": 0,
    "metadata_max_idle": 0,
}

_FLAGS: Final = ("idempotence", "block_on_buffer_full", "ignore_keys", "adaptive_partitioning")

_ALL: Final = -1


def settings_of(defaults: ProduceSettings, options: Mapping[str, Any]) -> tuple[ProduceSettings, EncodingSettings]:
    """`defaults`, and what encoding does by itself, with `options`.

    Args:
        options: as `ProducerOptions`.

    Raises:
        ConfigError: there is no such option, one is wrong, or contradicts another; the text names it.
    """
    for name in options:
        if name not in ProducerOptions.__annotations__:
            raise no_such_option(name, ProducerOptions.__annotations__)
    check_dialect(options.get("dialect"), options.get("register"))
    produce = {name: options[name] for name in ProduceOptions.__annotations__ if options.get(name) is not None}
    encoding = _encoding_settings(**{name: options[name] for name in _BEFORE_ENCODING if name in options})
    return _produce_settings(defaults, produce), replace(encoding, formats=value_formats(options))


def _encoding_settings(
    interceptors: Sequence[ProducerInterceptor] = (),
    header_serdes: HeaderSerdes | None = None,
    register: HeaderRegister | None = None,
) -> EncodingSettings:
    if callable(interceptors) or not isinstance(interceptors, Iterable):
        raise wrong("interceptors", arguments.shown(interceptors), "a list of functions of a topic and a record")
    of_type("register", register, HeaderRegister, 'a HeaderRegister, such as HeaderRegister.load("headers.toml")')
    of_type("header_serdes", header_serdes, HeaderSerdes, "HeaderSerdes({...})")
    return EncodingSettings(tuple(interceptors), header_serdes, register)


def _produce_settings(defaults: ProduceSettings, options: dict[str, Any]) -> ProduceSettings:
    of_type("topic_compression", options.get("topic_compression"), Mapping, 'a dict by topic, {"orders": "zstd"}')
    of_type("transactional_id", options.get("transactional_id"), str, "text")
    for name in _FLAGS:
        of_type(name, options.get(name), bool, "True or False")
    of_type("compression_level", options.get("compression_level"), int, "a whole number")
    if "partitioner" in options:
        check_partitioner(options["partitioner"])
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
    codec_id(settings.compression, options.get("compression_level"))
    for compression in {settings.compression, *settings.topic_compression.values()}:
        codec_id(compression, settings.level_of(compression))
    if settings.transactional_id is not None:
        _check_transactional(settings)
    if settings.dialect is not None:
        settings = _of_dialect(settings)
    is_idempotent = settings.acks == _ALL if settings.idempotence is None else settings.idempotence
    if is_idempotent and settings.acks != _ALL:
        raise ConfigError(f"acks={settings.acks}: a producer with idempotence needs acks=all; say idempotence=False")
    is_told = "timeout" in options or defaults.is_timeout_told
    return _outlasting_linger(replace(settings, idempotence=is_idempotent), is_told=is_told)


def _outlasting_linger(settings: ProduceSettings, *, is_told: bool) -> ProduceSettings:
    """The time of a batch counts from its first record: one that lingers has to have some left when it goes out, or it
    is failed without having been sent. Source: Kafka's KafkaProducer (configureDeliveryTimeout).

    Args:
        is_told: whether somebody has said how long that is.
    """
    if not settings.linger or settings.linger < settings.timeout:
        return settings
    if is_told:
        raise ConfigError(
            f"timeout={settings.timeout:g}: records wait for others for linger={settings.linger:g} seconds of it, and "
            "none would be sent; allowed is more than that"
        )
    return replace(settings, timeout=settings.linger + settings.timeout)


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

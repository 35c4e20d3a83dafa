"""Kafka's client properties, text to checked settings.

Read:

| property | what it sets |
|----------|--------------|
| bootstrap.servers | where to start: HOST:PORT,HOST:PORT |
| client.id | the name in every request |
| request.timeout.ms | how long one request, and one operation with its retries, may take |
| fetch.max.bytes, max.partition.fetch.bytes | bounds of one Fetch; above 128 MiB they mean 128 MiB |
| fetch.max.wait.ms, fetch.min.bytes | how long a Fetch waits, and for how much |
| acks, enable.idempotence, compression.type, batch.size, linger.ms, buffer.memory, max.block.ms | of a producer |
| retries, delivery.timeout.ms, max.in.flight.requests.per.connection (5 at most) | of a producer |
| compression.level, compression.gzip.level, compression.lz4.level, compression.zstd.level | of a producer |
| queue.buffering.max.messages, queue.buffering.max.kbytes | how much a producer keeps |
| partitioner, partitioner.class, partitioner.ignore.keys, partitioner.adaptive.partitioning.enable,
  partitioner.availability.timeout.ms | where a producer's records go |
| transactional.id, transaction.timeout.ms | of a producer with transactions |
| transaction.two.phase.commit.enable, enable.gapless.guarantee | nothing; true is refused |
| group.id | whose committed offsets a reader means, and which group a consumer joins |
| group.protocol, group.instance.id, group.remote.assignor, partition.assignment.strategy | of a consumer in a group |
| session.timeout.ms, heartbeat.interval.ms, max.poll.interval.ms, max.poll.records | of a consumer |
| enable.auto.commit, auto.commit.interval.ms, enable.auto.offset.store, auto.offset.reset | of a consumer |
| exclude.internal.topics, allow.auto.create.topics | of a consumer |
| client.rack | where a reader is: it fetches from a replica near it where brokers name one (KIP-392) |
| metadata.max.age.ms | how long it does before it asks again which one; when a consumer, and a producer, looks for new
  topics and partitions |
| metadata.max.idle.ms | how long a producer asks for a topic that nothing is sent to |
| security.protocol, sasl.*, ssl.* | how connections are protected: see `tagwire.client.security_properties` |
| isolation.level | whether readers see aborted and open transactions |

librdkafka's other names for these are read too (`ALIASES`). Values are text, numbers or booleans. Two properties that
set the same, such as buffer.memory and queue.buffering.max.kbytes, may not do so differently.

A property whose neglect would weaken security or guarantees is refused, and so is one that nobody knows, but that is
spelt nearly as one that somebody does. What other clients know is left alone, so that a configuration written for one
of them can be handed over whole. Any other is named once in the log of `tagwire.client`, as a warning.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, Final

from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.oauth_properties import OAUTH_CB
from tagwire.client.offset_reset import NO_RESET, OFFSET_RESETS, offset_reset
from tagwire.client.option_types import of_type
from tagwire.client.property_names import KNOWN, METRICS_CONTEXT, meant_by
from tagwire.client.property_values import (
    MAX_INT,
    as_it_is,
    batch_size,
    contradicts,
    flag,
    in_seconds,
    kibibytes,
    level,
    linger,
    long,
    long_in_seconds,
    lz4_level,
    none_at_zero,
    unserved,
    whole,
    wrong,
)
from tagwire.client.security_properties import READ as SECURITY
from tagwire.client.security_properties import security_options
from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.records import CODECS
from tagwire.rpc.addresses import host_fault

logger = logging.getLogger("tagwire.client")

Bootstrap = str | Sequence[str] | Mapping[str, Any]
"""Where to start: "HOST:PORT,HOST:PORT", a list of such addresses, or a dict of Kafka's client properties."""

# A response may hold one batch more than was wanted; the sum stays below what the client takes as one frame.
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
MAX_FETCH_BYTES: Final = MAX_FRAME_BYTES // 2

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
ISOLATIONS: Final = {READ_UNCOMMITTED: 0, READ_COMMITTED: 1}
"""What Fetch and ListOffsets call them."""

# More would be out of order after a failure: brokers remember five batches of a producer (Kafka's ProducerStateEntry).
MAX_IN_FLIGHT: Final = 5

MURMUR2_RANDOM: Final = "murmur2_random"
ROUND_ROBIN: Final = "round_robin"
PARTITIONERS: Final = (
    MURMUR2_RANDOM,
    "murmur2",
    "consistent_random",
    "consistent",
    "fnv1a_random",
    "fnv1a",
    "random",
    ROUND_ROBIN,
)
"""Partitioners by librdkafka's names; what they do is in `tagwire.client.producing.partitioners`."""

# Java's classes that are one of them.
_PARTITIONER_CLASSES: Final = {
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": MURMUR2_RANDOM,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": "random",
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": ROUND_ROBIN,
}

# As librdkafka calls them beside Kafka's own words.
LIBRDKAFKA_RESETS: Final = {
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
    "error": NO_RESET,
}

JAVA_ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
"""The names of assignors in JoinGroup, by their classes."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a reader fetches: sizes in bytes, wait in milliseconds.

    A partition gives 2 MiB at once: what is larger leaves the processor's caches between being received and being
    decoded, what is smaller waits for a broker more often.

    Attributes:
        isolation: one of `ISOLATIONS`.
        offset_reset: where to go on when a partition no longer holds an offset: one of `OFFSET_RESETS`; "none" is an
            error.
        rack: where the client is, so that brokers may name a replica near it to fetch from (KIP-392); "" for nowhere.
        metadata_max_age: seconds after which a leader is asked again for that replica.
    """

    max_bytes: int = 16 * 1024 * 1024
    max_partition_bytes: int = 2 * 1024 * 1024
    max_wait_ms: int = 500
    min_bytes: int = 1
    isolation: str = READ_UNCOMMITTED
    offset_reset: str = NO_RESET
    group: str | None = None
    rack: str = ""
    metadata_max_age: float = 300.0


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """How a producer sends: see `tagwire.client.Producer`. Sizes in bytes, times in seconds.

    `idempotence` None is as `acks` allows. `in_flight`: requests that may be on their way to a broker.
    `is_timeout_told`: whether somebody has said what `timeout` is, which linger does not make longer then.
    """

    acks: int = -1
    idempotence: bool | None = None
    compression: str = "none"
    topic_compression: Mapping[str, str] = field(default_factory=dict)
    batch_bytes: int = 256 * 1024
    linger: float = 0.005
    buffer_memory: int = 32 * 1024 * 1024
    max_block: float = 60.0
    retries: int = MAX_INT
    timeout: float = 120.0
    in_flight: int = MAX_IN_FLIGHT
    transactional_id: str | None = None
    transaction_timeout: float = 60.0
    dialect: str | None = None
    compression_level: int | None = None
    gzip_level: int | None = None
    lz4_level: int | None = None
    zstd_level: int | None = None
    buffer_records: int | None = None
    block_on_buffer_full: bool = True
    partitioner: str | Callable[[str, Any, int], int | None] = MURMUR2_RANDOM
    ignore_keys: bool = False
    adaptive_partitioning: bool = True
    availability_timeout: float = 0.0
    metadata_max_age: float = 300.0
    metadata_max_idle: float = 300.0
    is_timeout_told: bool = field(default=False, compare=False)

    def level_of(self, compression: str) -> int | None:
        """The level of a codec; None is its default."""
        own = {"gzip": self.gzip_level, "lz4": self.lz4_level, "zstd": self.zstd_level}
        if compression in own and own[compression] is None and compression == self.compression:
            return self.compression_level
        return own.get(compression)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client is told. `timeout` in seconds; `security` as keyword options of a client."""

    bootstrap: str
    client_id: str = "tagwire"
    timeout: float = 30.0
    fetch: FetchSettings = field(default_factory=FetchSettings)
    produce: ProduceSettings = field(default_factory=ProduceSettings)
    consume: ConsumeSettings = field(default_factory=ConsumeSettings)
    security: dict[str, Any] = field(default_factory=dict, repr=False)


# A property of these kinds that is not read would weaken how connections are protected.
_REFUSED: Final = re.compile(r"(sasl|ssl|security)\..*")


def parse(properties: Mapping[str, Any]) -> Settings:
    """The settings that `properties` give, defaults for the rest.

    Raises:
        ConfigError: naming the property, its value and what is allowed.
    """
    found: dict[str, dict[str, Any]] = {"": {}, "fetch": {}, "produce": {}, "consume": {}, _UNSERVED: {}}
    said_by: dict[tuple[str, str], str] = {}
    oauth_cb = properties.get(OAUTH_CB)
    properties = _texts(properties)
    for name, value in properties.items():
        text = value.strip()
        if name in _READ:
            section, field_name, read = _READ[name]
            read_value = read(name, text)
            if found[section].setdefault(field_name, read_value) != read_value:
                raise contradicts(name, said_by[section, field_name])
            said_by[section, field_name] = name
    if "metadata_max_age" in found["fetch"]:  # one property of who reads and of who writes
        found["produce"]["metadata_max_age"] = found["fetch"]["metadata_max_age"]
    if "bootstrap" not in found[""]:
        raise ConfigError("bootstrap.servers: missing; give the brokers as HOST:PORT,HOST:PORT")
    return Settings(
        fetch=FetchSettings(**found["fetch"]),
        produce=ProduceSettings(**found["produce"], is_timeout_told="timeout" in found["produce"]),
        consume=ConsumeSettings(**found["consume"]),
        security=security_options(properties, oauth_cb),
        **found[""],
    )


def _texts(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties that are read, under their first names, as text. Raises ConfigError for those that `check_name`
    refuses, for one whose value is no text, and for two names of one property with different values."""
    found: dict[str, str] = {}
    for given, value in properties.items():
        if not isinstance(given, str):
            raise ConfigError(f'a property is named {told(repr(given))}: needs a text, such as "client.id"')
        name = ALIASES.get(given, given)
        check_name(name)
        if name == OAUTH_CB or (name not in _READ and name not in SECURITY):
            continue  # other clients take functions and objects, too
        if name == "bootstrap.servers" and isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        if not isinstance(value, (str, Real, PathLike)):
            raise ConfigError(f"{given}: needs text, a number or a truth value, not {type(value).__name__}")
        text = as_text(value)
        if found.setdefault(name, text) != text:
            raise ConfigError(f"{given}: given twice, also as another name of it, and differently")
    return found


# What was warned of already: a Spark worker makes many clients of the same properties.
_warned: Final[set[str]] = set()


def check_name(name: str, prefix: str = "") -> None:
    """Raises ConfigError for a property that is not supported, or is misspelt; logs of one that nobody knows that it
    changes nothing. Values stay untold: one may be a password, or hold one.

    Args:
        prefix: what stands before the names of properties where they were given.
    """
    if name in _READ or name in SECURITY or name.startswith(METRICS_CONTEXT):
        return
    meant = None if name in KNOWN else meant_by(name)
    if meant is not None:
        raise ConfigError(f"{prefix}{told(name)}: no property of a Kafka client; {meant} is one")
    if _REFUSED.fullmatch(name):
        raise ConfigError(f"{prefix}{told(name)}: not supported")
    if name not in KNOWN and name not in _warned:
        _warned.add(name)
        logger.warning("%s%s: no Kafka client knows this property, and it changes nothing", prefix, told(name))


def acks_of(value: str | int, name: str = "acks") -> int:
    """-1, 0 or 1 from how people write it: "all", -1, 0, 1. Raises ConfigError."""
    text = str(value).strip().lower()
    if text not in ("all", "-1", "0", "1"):
        raise wrong(name, value, "all, 0 or 1")
    return -1 if text == "all" else int(text)


def compression_of(value: str, name: str = "compression") -> str:
    """A codec's name. Raises ConfigError."""
    if value not in CODECS:
        raise wrong(name, value, ", ".join(CODECS))
    return value


def isolation_of(value: str, name: str = "isolation") -> str:
    """One of `ISOLATIONS`. Raises ConfigError."""
    if not isinstance(value, str) or value not in ISOLATIONS:
        raise wrong(name, value, " or ".join(ISOLATIONS))
    return value


def offset_reset_of(value: str, name: str = "offset_reset") -> str:
    """One of `OFFSET_RESETS`. Raises ConfigError."""
    try:
        offset_reset(value)
    except (TypeError, AttributeError, ValueError):
        raise wrong(name, value, ", ".join(OFFSET_RESETS)) from None
    return value


def at_least(name: str, value: Any, lowest: float) -> Any:
    """`value` as Python's own number, one of NumPy's too; it may be left out but not be below `lowest`. Raises
    ConfigError."""
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not value >= lowest:  # type: ignore[operator]
        raise ConfigError(f"{name}={value!r}: needs a number from {lowest} on")
    return int(value) if isinstance(value, Integral) else float(value)


def whole_up_to(name: str, value: float, highest: int) -> int:
    """A number that counts something: what is beyond `highest` means that. Raises ConfigError for a part of one, which
    no request and no kernel could be told."""
    found = min(value, highest)
    if found != int(found):
        raise ConfigError(f"{name}={value!r}: needs a whole number")
    return int(found)


def as_text(value: str | Real | PathLike[str]) -> str:
    """A setting as Kafka's files write it; a member of an enum is its value."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value) if isinstance(value, Integral) else float(value))


def seconds(name: str, value: float | None) -> None:
    """Raises ConfigError for a time that is neither left out nor a number."""
    if value is None or type(value) is float or type(value) is int:  # without asking what a Real is
        return
    of_type(name, value, Real, "a number of seconds")


def bootstrap_text(given: object) -> str:
    """Addresses as text, from that or from a list of them. Raises ConfigError for what is neither."""
    if isinstance(given, str):
        return given
    if isinstance(given, Iterable) and not isinstance(given, (bytes, Mapping)):
        several = list(given)
        if all(isinstance(each, str) for each in several):
            return ",".join(several)
    hint = ", such as its bootstrap" if hasattr(type(given), "bootstrap") else ""
    raise ConfigError(
        f'bootstrap of type {type(given).__name__}: needs "HOST:PORT,HOST:PORT"{hint}, a list of addresses, or a dict '
        'of Kafka\'s properties, {"bootstrap.servers": "HOST:PORT"}'
    )


def addresses_of(bootstrap: str) -> list[tuple[str, int]]:
    """(host, port) pairs from `HOST:PORT,HOST:PORT`; an IPv6 host stands in brackets. Raises ConfigError."""
    addresses = [_address(entry.strip(), bootstrap) for entry in bootstrap.split(",") if entry.strip()]
    if not addresses:
        raise wrong("bootstrap.servers", repr(bootstrap), "HOST:PORT,HOST:PORT")
    return addresses


def _address(entry: str, bootstrap: str) -> tuple[str, int]:
    match = re.fullmatch(r"(?:\[([^\[\]\s]+)\]|([^:\s\[\]]+)):(\d{1,5})", entry, re.ASCII)
    if match is None or not 0 < int(match[3]) < 65536:
        raise wrong("bootstrap.servers", repr(bootstrap), f"HOST:PORT,HOST:PORT, which {entry!r} is not")
    host = match[1] or match[2]
    if fault := host_fault(host):
        raise ConfigError(f"bootstrap.servers: {told(entry)!r}: {fault}")
    return host, int(match[3])


def _bootstrap(name: str, text: str) -> str:
    addresses_of(text)
    return text


def _acks(name: str, text: str) -> int:
    return acks_of(text, name)


def _compression(name: str, text: str) -> str:
    return compression_of(text, name)


def _isolation(name: str, text: str) -> str:
    return isolation_of(text.lower(), name)


def _fetch_bytes(name: str, text: str) -> int:
    return min(whole(1, MAX_INT)(name, text), MAX_FETCH_BYTES)


def _protocol(name: str, text: str) -> str:
    if text.lower() not in ("classic", "consumer"):
        raise wrong(name, text, "classic or consumer")
    return text.lower()


def _assignors(name: str, text: str) -> tuple[str, ...]:
    """By their names, or as Kafka's clients of Java name their classes."""
    return tuple(JAVA_ASSIGNORS.get(each.strip(), each.strip()) for each in text.split(",") if each.strip())


def _auto_offset_reset(name: str, text: str) -> str:
    return offset_reset_of(LIBRDKAFKA_RESETS.get(text.lower(), text), name)


def _in_flight(name: str, text: str) -> int:
    return min(whole(1, MAX_INT)(name, text), MAX_IN_FLIGHT)


def _partitioner(name: str, text: str) -> str:
    if text not in PARTITIONERS:
        raise wrong(name, text, ", ".join(PARTITIONERS))
    return text


def _partitioner_class(name: str, text: str) -> str:
    if text not in _PARTITIONER_CLASSES:
        raise ConfigError(f"{name}: {told(text)!r} is a class of Java's: give Producer(partitioner=...) a function")
    return _PARTITIONER_CLASSES[text]


# Which settings properties belong to that may not be true.
_UNSERVED: Final = "unserved"


# Property -> which settings, which of their fields, how to read it.
_READ: Final[dict[str, tuple[str, str, Callable[[str, str], Any]]]] = {
    "bootstrap.servers": ("", "bootstrap", _bootstrap),
    "client.id": ("", "client_id", as_it_is),
    "request.timeout.ms": ("", "timeout", in_seconds(1)),
    "fetch.max.bytes": ("fetch", "max_bytes", _fetch_bytes),
    "max.partition.fetch.bytes": ("fetch", "max_partition_bytes", _fetch_bytes),
    "fetch.max.wait.ms": ("fetch", "max_wait_ms", whole(0, MAX_INT)),
    "fetch.min.bytes": ("fetch", "min_bytes", whole(0, MAX_INT)),
    "isolation.level": ("fetch", "isolation", _isolation),
    "group.id": ("fetch", "group", as_it_is),
    "group.protocol": ("consume", "protocol", _protocol),
    "group.instance.id": ("consume", "instance_id", as_it_is),
    "group.remote.assignor": ("consume", "remote_assignor", as_it_is),
    "partition.assignment.strategy": ("consume", "assignors", _assignors),
    "session.timeout.ms": ("consume", "session_timeout", in_seconds(1)),
    "heartbeat.interval.ms": ("consume", "heartbeat_interval", in_seconds(1)),
    "max.poll.interval.ms": ("consume", "max_poll_interval", in_seconds(1)),
    "max.poll.records": ("consume", "max_poll_records", whole(1, MAX_INT)),
    "enable.auto.commit": ("consume", "auto_commit", flag),
    "auto.commit.interval.ms": ("consume", "auto_commit_interval", in_seconds(0)),
    "enable.auto.offset.store": ("consume", "auto_offset_store", flag),
    "auto.offset.reset": ("consume", "offset_reset", _auto_offset_reset),
    "exclude.internal.topics": ("consume", "exclude_internal_topics", flag),
    "allow.auto.create.topics": ("consume", "allow_auto_create", flag),
    "client.rack": ("fetch", "rack", as_it_is),
    "metadata.max.age.ms": ("fetch", "metadata_max_age", long_in_seconds(0)),
    "metadata.max.idle.ms": ("produce", "metadata_max_idle", long_in_seconds(5000)),
    "acks": ("produce", "acks", _acks),
    "compression.type": ("produce", "compression", _compression),
    "batch.size": ("produce", "batch_bytes", batch_size),
    "linger.ms": ("produce", "linger", linger),
    "retries": ("produce", "retries", whole(0, MAX_INT)),
    "delivery.timeout.ms": ("produce", "timeout", in_seconds(1)),
    "enable.idempotence": ("produce", "idempotence", flag),
    "buffer.memory": ("produce", "buffer_memory", long(1, 2**53)),
    "max.block.ms": ("produce", "max_block", long_in_seconds(0)),
    "max.in.flight.requests.per.connection": ("produce", "in_flight", _in_flight),
    "compression.level": ("produce", "compression_level", level),
    "compression.gzip.level": ("produce", "gzip_level", level),
    "compression.lz4.level": ("produce", "lz4_level", lz4_level),
    "compression.zstd.level": ("produce", "zstd_level", whole(-MAX_INT, MAX_INT)),
    "queue.buffering.max.messages": ("produce", "buffer_records", none_at_zero),
    "queue.buffering.max.kbytes": ("produce", "buffer_memory", kibibytes),
    "partitioner": ("produce", "partitioner", _partitioner),
    "partitioner.class": ("produce", "partitioner", _partitioner_class),
    "partitioner.ignore.keys": ("produce", "ignore_keys", flag),
    "partitioner.adaptive.partitioning.enable": ("produce", "adaptive_partitioning", flag),
    "partitioner.availability.timeout.ms": ("produce", "availability_timeout", long_in_seconds(0)),
    "transactional.id": ("produce", "transactional_id", as_it_is),
    "transaction.timeout.ms": ("produce", "transaction_timeout", in_seconds(1)),
    "transaction.two.phase.commit.enable": (
        _UNSERVED,
        "two_phase_commit",
        unserved("brokers would abort a prepared transaction when transaction.timeout.ms is over (KIP-939)"),
    ),
    "enable.gapless.guarantee": (
        _UNSERVED,
        "gapless",
        unserved("a batch that fails, fails alone, and those after it are sent"),
    ),
}

ALIASES: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "auto.commit.enable": "enable.auto.commit",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "queue.buffering.max.ms": "linger.ms",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
}
"""librdkafka's other names for what is read."""

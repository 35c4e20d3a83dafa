"""The options of a consumer, checked one by one and together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from tagwire.client import arguments
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.config import FetchSettings, at_least, offset_reset_of, whole_up_to
from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.option_types import of_type
from tagwire.client.property_values import MAX_INT, wrong
from tagwire.client.reader_settings import DecodingSettings, ReaderOptions
from tagwire.client.reader_settings import settings_of as reader_settings_of
from tagwire.errors import ConfigError, no_such_option
from tagwire.partitions import TopicPartition
from tagwire.records import HeaderSerdes
from tagwire.records.interceptors import ConsumerInterceptor


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """What a consumer works by, checked.

    Attributes:
        group: of its membership; None where it has no group.
        auto_commit: whether it commits by itself.
        on_commit: what hears of every commit, as `ConsumerInterceptor` says.
    """

    consume: ConsumeSettings
    fetch: FetchSettings
    decoding: DecodingSettings
    group: GroupSettings | None
    auto_commit: bool
    interceptors: tuple[ConsumerInterceptor, ...] = ()
    header_serdes: HeaderSerdes | None = None
    on_commit: tuple[Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object], ...] = ()


class MemberOptions(TypedDict, total=False):
    """`ConsumeSettings` as keyword options of a consumer; None is as the client is set up."""

    protocol: str | None
    instance_id: str | None
    session_timeout: float | None
    heartbeat_interval: float | None
    assignors: str | Sequence[str] | None
    remote_assignor: str | None
    max_poll_interval: float | None
    max_poll_records: int | None
    auto_commit: bool | None
    auto_commit_interval: float | None
    auto_offset_store: bool | None
    rack: str | None
    metadata_max_age: float | None
    exclude_internal_topics: bool | None
    allow_auto_create: bool | None


class ConsumerOptions(ReaderOptions, MemberOptions, total=False):
    """`MemberOptions`, those of a reader, and what records pass on their way, as keyword options of a consumer."""

    interceptors: Sequence[ConsumerInterceptor]
    header_serdes: HeaderSerdes | None


_LOWEST: Final = {
    "session_timeout": 0.001,
    "heartbeat_interval": 0.001,
    "max_poll_interval": 0.001,
    "max_poll_records": 1,
    "auto_commit_interval": 0,
    "metadata_max_age": 0,
}
_TEXTS: Final = ("protocol", "instance_id", "remote_assignor", "rack")
_FLAGS: Final = ("auto_commit", "auto_offset_store", "exclude_internal_topics", "allow_auto_create")
_GROUP: Final = (
    "protocol",
    "instance_id",
    "session_timeout",
    "heartbeat_interval",
    "assignors",
    "remote_assignor",
    "max_poll_interval",
    "exclude_internal_topics",
    "allow_auto_create",
)


def settings_of(fetch: FetchSettings, consume: ConsumeSettings, options: Mapping[str, Any]) -> ConsumerSettings:
    """What the client is set up for, with `options`.

    Args:
        options: as `ConsumerOptions`.

    Raises:
        ConfigError: there is no such option, one is wrong, or contradicts another; the text names it.
    """
    for name in options:
        if name not in ConsumerOptions.__annotations__:
            raise no_such_option(name, ConsumerOptions.__annotations__)
    of_readers = {name: options[name] for name in ReaderOptions.__annotations__ if name in options}
    reset = of_readers.pop("offset_reset", None)
    fetching, decoding = reader_settings_of(fetch, of_readers)
    own = {name: options[name] for name in MemberOptions.__annotations__ if options.get(name) is not None}
    if reset is not None:
        own["offset_reset"] = offset_reset_of(reset)
    own = _checked(own)
    fetching = replace(fetching, **{name: own.pop(name) for name in ("rack", "metadata_max_age") if name in own})
    consuming = replace(consume, **own)
    group = fetching.group or None
    if consuming.auto_commit and group is None:
        raise ConfigError("auto_commit=True: a consumer without a group has nowhere to commit; give it group=")
    interceptors = options.get("interceptors", ())
    of_type("interceptors", interceptors, Iterable, "a list of functions of a record")
    if callable(interceptors) or isinstance(interceptors, str):
        raise wrong("interceptors", arguments.shown(interceptors), "a list of functions of a record")
    passes = tuple(interceptors or ())
    of_type("header_serdes", options.get("header_serdes"), HeaderSerdes, "HeaderSerdes({...})")
    return ConsumerSettings(
        consuming,
        replace(fetching, offset_reset=consuming.offset_reset),
        decoding,
        None if group is None else _group_settings(group, consuming, fetching),
        group is not None if consuming.auto_commit is None else consuming.auto_commit,
        passes,
        options.get("header_serdes"),
        tuple(each.on_commit for each in passes if hasattr(each, "on_commit")),
    )


def _group_settings(group: str, consume: ConsumeSettings, fetch: FetchSettings) -> GroupSettings:
    same = {name: getattr(consume, name) for name in _GROUP}
    return GroupSettings(group, rack=fetch.rack, metadata_max_age=fetch.metadata_max_age, **same)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    for name in _TEXTS:
        if name in given:
            arguments.name(name, given[name])
    for name in _FLAGS:
        of_type(name, given.get(name), bool, "True or False")
    for name, lowest in _LOWEST.items():
        if name in given:
            given[name] = at_least(name, given[name], lowest)
    if "max_poll_records" in given:
        given["max_poll_records"] = whole_up_to("max_poll_records", given["max_poll_records"], MAX_INT)
    if "assignors" in given:
        given["assignors"] = tuple(arguments.names("assignors", given["assignors"]))
    return given

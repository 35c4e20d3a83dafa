"""Arguments of the client's methods: from every form in which people write them to the one that is worked with.

Topics, partitions, offsets and configs come in as other clients of Kafka take them. What means nothing is a
ConfigError that says what to write. The values of a dict are not shown: where somebody hands over properties instead,
one of them may be a password.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from numbers import Real
from operator import index
from typing import Any, Final, TypeVar

from tagwire.client.config import as_text
from tagwire.client.offset_spec import AtTimestamp
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.partitions import EARLIEST, LATEST, OFFSET_NAMES, TopicPartition

ValueT = TypeVar("ValueT")

Names = str | Sequence[str] | AbstractSet[str]
"""One name, or several."""

ConfigValue = str | int | float | bool

TopicOrPartition = str | tuple[str, int]
"""A topic's name, for all of its partitions, or a (topic, partition) pair, such as `TopicPartition`."""

TopicsOrPartitions = TopicOrPartition | Iterable[TopicOrPartition]
"""A topic, a partition, or several of either."""

PartitionT = TypeVar("PartitionT", bound=tuple[str, int])

ByTopicOrPartition = Mapping[Any, ValueT]
"""A value by `TopicOrPartition`. A type checker takes a dict by text for none by text or pairs, so that its keys are
checked when the program runs."""

MAX_OFFSET: Final = 2**63 - 1

OFFSET: Final = 'an offset, "earliest", "latest", an AtTimestamp or a datetime with a time zone'

_PAIR: Final = 'a topic and a partition, such as ("orders", 0)'
_LONGEST: Final = 80


def shown(given: object) -> str:
    """An argument as an error shows it: its type alone where it may hold a secret."""
    if given is None or isinstance(given, (str, bytes, int, float)):
        return told(repr(given), _LONGEST)
    if isinstance(given, tuple) and all(isinstance(each, (str, int)) for each in given):
        return told(repr(tuple(given)), _LONGEST)
    return f"<{type(given).__name__}>"


def whole(given: object) -> int | None:
    """`given` where it is a whole number, also one of NumPy's; None otherwise."""
    if isinstance(given, bool):
        return None
    try:
        return index(given)  # type: ignore[arg-type]
    except TypeError:
        return None


def name(option: str, given: object) -> str:
    """One name. Raises ConfigError."""
    if not isinstance(given, str):
        raise wrong(option, shown(given), 'one name, such as "orders"')
    return given


def names(option: str, given: object) -> list[str]:
    """The names in `given`, which is one of them, or several. Raises ConfigError."""
    if isinstance(given, str):
        return [given]
    found = _listed(given)
    if found is None:
        raise wrong(option, shown(given), 'a name, such as "orders", or a list of names')
    return [name(f"one of {option}", each) for each in found]


def numbers(option: str, given: object) -> list[int]:
    """The whole numbers in `given`, which is one of them, or several. Raises ConfigError."""
    members = [given] if whole(given) is not None else _listed(given)
    found = None if members is None else [whole(each) for each in members]
    if found is None or None in found:
        raise wrong(option, shown(given), "a number, such as 1, or a list of numbers")
    return [number for number in found if number is not None]


def several(option: str, given: object, kinds: type[ValueT] | tuple[type[ValueT], ...], shape: str) -> list[ValueT]:
    """The members of `given`, which is one of these kinds, or several. Raises ConfigError.

    Args:
        shape: what is allowed, for the error.
    """
    if isinstance(given, kinds):
        return [given]
    found = _listed(given)
    if found is None:
        raise wrong(option, shown(given), shape)
    members: list[ValueT] = []
    for each in found:
        if not isinstance(each, kinds):
            raise wrong(f"one of {option}", shown(each), shape)
        members.append(each)
    return members


def topic_partition(option: str, given: object) -> TopicPartition:
    """One partition. Raises ConfigError."""
    if isinstance(given, (tuple, list)) and len(given) == 2:
        topic, partition = given[0], whole(given[1])
        if isinstance(topic, str) and partition is not None:
            return TopicPartition(topic, partition)
    raise wrong(option, shown(given), _PAIR)


def by_topic_partition(option: str, given: object, example: str) -> dict[TopicPartition, object]:
    """The entries of a mapping whose keys are partitions. Raises ConfigError.

    Args:
        example: a value, as it would be written.
    """
    shape = f'a dict by topic and partition, {{("orders", 0): {example}}}'
    if not isinstance(given, Mapping):
        raise wrong(option, shown(given), shape)
    found: dict[TopicPartition, object] = {}
    for key, value in given.items():
        try:
            found[topic_partition(option, key)] = value
        except ConfigError:
            raise wrong(f"a key of {option}", shown(key), shape) from None
    return found


def topics_or_partitions(option: str, given: object) -> list[str | TopicPartition]:
    """The topics and partitions in `given`, which is one of either, or several; the keys of a dict where all of them
    are pairs. Raises ConfigError."""
    shape = f'a topic, such as "orders", {_PAIR}, or a list of these'
    if isinstance(given, str) or _is_pair(given):
        given = [given]
    elif isinstance(given, Mapping) and all(map(_is_pair, given)):
        given = list(given)
    found = _listed(given)
    if found is None:
        raise wrong(option, shown(given), shape)
    # A list of two is a pair too: JSON has no others.
    return [_topic_or_partition(option, tuple(each) if isinstance(each, list) else each, shape) for each in found]


def by_topic_or_partition(option: str, given: object, example: str) -> list[tuple[str | TopicPartition, object]]:
    """The entries of a mapping whose keys are topics or partitions. Raises ConfigError.

    Args:
        example: a value, as it would be written.
    """
    shape = f'a dict by topic or by partition, {{"orders": {example}}} or {{("orders", 0): {example}}}'
    if not isinstance(given, Mapping):
        raise wrong(option, shown(given), shape)
    return [(_topic_or_partition(option, key, shape), value) for key, value in given.items()]


def expanded(
    entries: Iterable[tuple[str | TopicPartition, ValueT]], partitions: Mapping[str, Iterable[int]]
) -> dict[TopicPartition, ValueT]:
    """The entries with each topic as all of its partitions; a value of a partition's own comes before its topic's.

    Args:
        partitions: by topic.
    """
    found: dict[TopicPartition, ValueT] = {}
    for key, value in entries:
        if isinstance(key, TopicPartition):
            found[key] = value
        else:
            for partition in partitions[key]:
                found.setdefault(TopicPartition(key, partition), value)
    return found


def offset_spec(option: str, given: object, also: str = "") -> int | AtTimestamp:
    """An offset, `EARLIEST` and `LATEST` among them, or a time. Raises ConfigError.

    Args:
        also: what else might have been given, for the error.
    """
    number = whole(given)
    if number is not None and min(EARLIEST, LATEST) <= number <= MAX_OFFSET:
        return number
    found = _timed(option, given)
    if found is None:
        raise wrong(option, shown(given), f"{OFFSET}, or {also}" if also else OFFSET)
    return found


def offset(option: str, given: object) -> int:
    """An offset that a record may have, or come next. Raises ConfigError."""
    number = whole(given)
    if number is None or not 0 <= number <= MAX_OFFSET:
        raise wrong(option, shown(given), "an offset from 0 on")
    return number


def timestamp(option: str, given: object) -> int:
    """The timestamp of a ListOffsets request: milliseconds since 1970 UTC, or a number below 0 that means something
    else, such as `EARLIEST`. Raises ConfigError."""
    number = whole(given)
    if number is not None:
        return number
    found = _timed(option, given)
    if found is None:
        raise wrong(
            option, shown(given), '"earliest", "latest", milliseconds, an AtTimestamp or a datetime with a time zone'
        )
    return found if isinstance(found, int) else max(found.milliseconds, 0)


def config_values(option: str, given: object) -> dict[str, str]:
    """Configs as Kafka writes them, numbers and booleans as text. Raises ConfigError."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise wrong(option, shown(given), 'a dict by config, {"retention.ms": "-1"}')
    return {key: config_value(f"{option} of {told(key)}", value) for key, value in given.items()}


def config_value(option: str, given: object) -> str:
    """One config's value, as text. Raises ConfigError."""
    if isinstance(given, (str, Real)):
        return as_text(given)
    raise wrong(option, shown(given), 'text or a number, such as "-1"')


def _timed(option: str, given: object) -> int | AtTimestamp | None:
    if isinstance(given, str):
        return OFFSET_NAMES.get(given.strip().lower())
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ConfigError(f"{option}={given}: a time without a time zone; give it one, such as tzinfo=UTC")
        return AtTimestamp(round(given.timestamp() * 1000))
    if isinstance(given, AtTimestamp):
        milliseconds = whole(given.milliseconds)
        if milliseconds is None:
            raise wrong(option, f"AtTimestamp({shown(given.milliseconds)})", "AtTimestamp(milliseconds since 1970 UTC)")
        return AtTimestamp(milliseconds)
    return None


def _topic_or_partition(option: str, given: object, shape: str) -> str | TopicPartition:
    if isinstance(given, str):
        return given
    # One that is made already is taken as it is: there may be a hundred thousand of them.
    if type(given) is TopicPartition and type(given.topic) is str and type(given.partition) is int:
        return given
    if _is_pair(given):
        return topic_partition(option, given)
    raise wrong(f"one of {option}", shown(given), shape)


def _is_pair(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and whole(given[1]) is not None


def _listed(given: object) -> list[object] | None:
    """The members of a list or a set; None for what is neither."""
    if isinstance(given, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(given, Iterable):
        return None
    return list(given)

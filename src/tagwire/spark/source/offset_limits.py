"""Where a read starts and ends, as the options of Spark's Kafka connector say it: offsets or timestamps.

Source: Spark's KafkaOffsetRangeLimit, KafkaSourceProvider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, OFFSET_NAMES, TopicPartition
from tagwire.spark.option_values import MAX_OFFSET, choice, json_object

Offsets = dict[TopicPartition, int]
"""The next offset to read, per partition."""


@dataclass(frozen=True)
class TimestampLimit:
    """The first record at or after a timestamp, in milliseconds.

    Attributes:
        at: for all partitions, or for each.
        option: what said so.
        else_latest: whether a partition without such a record means its end; otherwise it is an error.
    """

    at: int | Offsets
    option: str
    else_latest: bool


OffsetLimit = int | Offsets | TimestampLimit
"""Where a read starts or ends: `EARLIEST` or `LATEST` for all partitions, an offset (or -2, -1) for each, or times."""

STRATEGY = "startingOffsetsByTimestampStrategy"
START_OPTIONS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
END_OPTIONS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""Which option counts where several are given: the first."""


def starting_limit(given: Mapping[str, str]) -> OffsetLimit | None:
    """The start that the options say; None where none does. Raises ConfigError."""
    else_latest = choice(STRATEGY, given, ("error", "latest")) == "latest"
    return _bound(START_OPTIONS, given, else_latest)


def ending_limit(given: Mapping[str, str]) -> OffsetLimit | None:
    """The end that the options say; None where none does. Without a record that late, it is the partition's end."""
    return _bound(END_OPTIONS, given, else_latest=True)


def forbid(option: str, bound: OffsetLimit, forbidden: int, why: str) -> None:
    """Raises ConfigError where `bound` says `forbidden` of any partition."""
    if not isinstance(bound, TimestampLimit) and forbidden in (bound.values() if isinstance(bound, dict) else (bound,)):
        raise ConfigError(f"option {option}: {why}")


def parse_offsets(text: str, option: str, least: int = EARLIEST) -> Offsets:
    """Offsets, or times, per partition from the connector's JSON, `{"topic":{"0":23,"1":-2}}`.

    Raises:
        ConfigError: not such JSON, a partition named twice, or a number below `least`.
    """
    offsets: Offsets = {}
    for topic, partitions in object_of(text, option).items():
        if not isinstance(partitions, dict) or not partitions:
            wrong_json(option, text, f"topic {topic!r} needs its partitions")
        for index, offset in partitions.items():
            if not re.fullmatch(r"0|[1-9]\d{0,9}", index):
                wrong_json(option, text, f"{topic!r} has no partition {index!r}")
            if type(offset) is not int or not least <= offset <= MAX_OFFSET:
                wrong_json(option, text, f"{topic}-{index} has no {'time' if least >= 0 else 'offset'} {offset!r}")
            offsets[TopicPartition(topic, int(index))] = offset
    return offsets


def object_of(text: str, option: str) -> dict[str, Any]:
    """The JSON object of an option. Raises ConfigError."""
    try:
        return json_object(text, "")
    except ConfigError as error:
        wrong_json(option, text, str(error).removeprefix(": "))


def wrong_json(option: str, text: str, why: str) -> NoReturn:
    """Raises ConfigError about the value of an option that takes JSON."""
    hint = _ALLOWED.get(option, 'earliest, latest or {"topic":{"0":23,"1":-2}}')
    raise ConfigError(f"option {option}={text[:200]!r}: {why}; allowed: {hint}")


_ALLOWED = {
    "assign": '{"topic":[0,1]}',
    "endingOffsets": 'latest or {"topic":{"0":23,"1":-1}}',
    "startingOffsetsByTimestamp": '{"topic":{"0":1700000000000}}, in milliseconds',
    "endingOffsetsByTimestamp": '{"topic":{"0":1700000000000}}, in milliseconds',
}


def _bound(options: tuple[str, str, str], given: Mapping[str, str], else_latest: bool) -> OffsetLimit | None:
    option = next((name for name in options if name in given), None)
    if option is None:
        return None
    text = given[option].strip()
    if option == options[0]:
        if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > MAX_OFFSET:
            raise ConfigError(f"option {option}={given[option]!r}: needs milliseconds since 1970 as a whole number")
        return TimestampLimit(int(text), option, else_latest)
    if option == options[1]:
        return TimestampLimit(parse_offsets(text, option, least=0), option, else_latest)
    named = OFFSET_NAMES.get(text.lower())
    return parse_offsets(given[option], option) if named is None else named

"""How the text of one client property is read: numbers with their bounds, times, flags.

Each reader takes the property's name and its text, and raises ConfigError with both and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tagwire.errors import ConfigError

MAX_INT: Final = 2**31 - 1

_FAST_LZ4: Final = 9
_MOST_LZ4: Final = 17

# What many a configuration of Java's says for "without a bound".
_MAX_LONG: Final = 2**63 - 1


def wrong(name: str, value: object, allowed: str) -> ConfigError:
    """The error about the value of a property or an option."""
    return ConfigError(f"{name}={value}: allowed is {allowed}")


def contradicts(name: str, other: str) -> ConfigError:
    """The error about a property that sets what another has set otherwise."""
    return ConfigError(f"{name}: sets the same as {other}, and differently")


def as_it_is(name: str, text: str) -> str:
    return text


def flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise wrong(name, text, "true or false")
    return text.lower() == "true"


def whole(lowest: int, highest: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII) or not lowest <= int(text) <= highest:
            raise wrong(name, text, f"a whole number from {lowest} to {highest}")
        return int(text)

    return read


def long(lowest: int, highest: int) -> Callable[[str, str], int]:
    """What is a long of Java's, and means at most `highest`."""
    read = whole(lowest, _MAX_LONG)
    return lambda name, text: min(read(name, text), highest)


def in_seconds(lowest_ms: int) -> Callable[[str, str], float]:
    read_ms = whole(lowest_ms, MAX_INT)
    return lambda name, text: read_ms(name, text) / 1000


def long_in_seconds(lowest_ms: int) -> Callable[[str, str], float]:
    read_ms = long(lowest_ms, MAX_INT)
    return lambda name, text: read_ms(name, text) / 1000


def level(name: str, text: str) -> int | None:
    """librdkafka's -1 is the codec's default."""
    found = whole(-MAX_INT, MAX_INT)(name, text)
    return None if found == -1 else found


def lz4_level(name: str, text: str) -> int | None:
    """9 is the fast compressor, the default; what is above 12 compresses as that does. Source: Kafka's
    Lz4BlockOutputStream."""
    found = whole(-1, _MOST_LZ4)(name, text)
    return None if found in (-1, _FAST_LZ4) else min(found, 12)


def none_at_zero(name: str, text: str) -> int | None:
    return whole(0, MAX_INT)(name, text) or None


def kibibytes(name: str, text: str) -> int:
    return 1024 * whole(1, MAX_INT)(name, text)


def linger(name: str, text: str) -> float:
    """librdkafka takes parts of a millisecond."""
    if not re.fullmatch(r"\d{1,19}(\.\d{1,9})?", text, re.ASCII):
        raise wrong(name, text, f"a number from 0 to {_MAX_LONG}")
    return min(float(text), MAX_INT) / 1000


def batch_size(name: str, text: str) -> int:
    """0 has each record be a batch. Source: Kafka's KafkaProducer."""
    return max(1, whole(0, MAX_INT)(name, text))


def unserved(why: str) -> Callable[[str, str], bool]:
    """A guarantee that nobody may believe to have."""

    def read(name: str, text: str) -> bool:
        if flag(name, text):
            raise ConfigError(f"{name}=true: not supported: {why}")
        return False

    return read

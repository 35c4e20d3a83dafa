"""Records for which the whole batch is refused: which, and why each (KIP-467)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError

MOST_TOLD: Final = 1000
"""Of how many records it is told why they are refused: a small batch may unpack to millions."""

NO_TIMESTAMP: Final = -1


class RecordsRefusedError(KafkaError):
    """A batch is refused for some of its records.

    Attributes:
        problems: {number of a record in its batch: what is wrong with it}, of the first `MOST_TOLD`.
    """

    def __init__(self, code: int, message: str, problems: Mapping[int, str]) -> None:
        super().__init__(code, message)
        self.problems = problems

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.message, self.problems)


def refuse(untimely: Mapping[int, str], others: Mapping[int, str]) -> None:
    """Refuse a batch with records whose timestamps are not taken, or that are wrong otherwise, if there are any.

    Raises:
        RecordsRefusedError: INVALID_TIMESTAMP if it is about any timestamp, else INVALID_RECORD.
    """
    problems = dict(islice(sorted({**untimely, **others}.items()), MOST_TOLD))
    if not problems:
        return
    error = Error.INVALID_TIMESTAMP if untimely.keys() - others.keys() else Error.INVALID_RECORD
    first = min(problems)
    raise RecordsRefusedError(error, f"record {first} {problems[first]}", problems)


def untimely(times: Sequence[int], greatest: int, config: TopicConfig, now_ms: int) -> dict[int, str]:
    """Which timestamps of a batch's records the topic does not take, the first `MOST_TOLD`, and why:
    message.timestamp.before.max.ms and message.timestamp.after.max.ms.

    A record without a timestamp (-1) is taken.

    Args:
        times: at least one.
        greatest: of `times`.
    """
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    earliest, latest = now_ms - before, now_ms + after
    if greatest <= latest and min(times) >= earliest:
        return {}
    found: dict[int, str] = {}
    for number, time in enumerate(times):
        if len(found) == MOST_TOLD:
            break
        if time < earliest and time != NO_TIMESTAMP:
            found[number] = f"has timestamp {time}, {now_ms - time} ms ago: message.timestamp.before.max.ms={before}"
        elif time > latest:
            found[number] = f"has timestamp {time}, {time - now_ms} ms ahead: message.timestamp.after.max.ms={after}"
    return found

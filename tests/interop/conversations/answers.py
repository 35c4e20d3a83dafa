"""What of an answer is compared: all of it, but for what each broker decides for itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .batches import seen
from .program import Address, Symbols

LEFT_OUT: Final = frozenset(
    {
        "throttleTimeMs",
        "errorMessage",
        "batchIndexErrorMessage",
        "host",
        "port",
        "clusterId",
        "documentation",
        "logDir",
        "usableBytes",
        "totalBytes",
    }
)
"""Times, texts, addresses, disks."""

OF_TOPIC: Final = 1
"""The source of a configuration that a topic has of its own; where the others come from depends on the brokers."""

OTHERWISE_SET: Final = frozenset({"retention.ms", "message.timestamp.before.max.ms"})
"""Settings of the real broker, see real_node.py."""

NODES: Final = frozenset(
    {"nodeId", "leaderId", "controllerId", "brokerId", "replicaNodes", "isrNodes", "offlineReplicas", "replicas"}
)
LISTS: Final = frozenset({"ListTransactions", "ListGroups", "DescribeLogDirs", "DescribeTopicPartitions", "Metadata"})
"""Where there may be what other runs have left."""

REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""Where Kafka tells the assignments of the generation before, and ours none."""

NAMING: Final = ("transactionalId", "groupId", "name")
_EPOCHS: Final = frozenset({"memberEpoch", "groupEpoch", "assignmentEpoch"})
_PRODUCERS: Final = frozenset({"producerId", "producer_id"})
_MEMBERS: Final = frozenset({"memberId", "leader"})
_NOBODY: Final = "A" * 22
_DAY: Final = 86_400_000


class Reading:
    """Reads the answers of one broker, by what it has decided."""

    def __init__(self, symbols: Symbols, api: str = "") -> None:
        self._is_list = api in LISTS
        self._symbols = symbols
        self._topics = {at: name for name, at in symbols.topic_ids.items()}
        self._producers = {at[0]: name for name, at in symbols.producers.items()}
        self._members = {at: name for name, at in symbols.members.items()}

    def read(self, answer: Any, name: str = "") -> Any:
        """The answer as plain values that are the same at both brokers, lists in an order of their own."""
        if name == "abortedTransactions" and not answer:
            return None  # that there are none is said either way, of what is refused
        if isinstance(answer, Mapping) and answer.get("configSource", OF_TOPIC) != OF_TOPIC:
            kept = ("name", "readOnly", "isSensitive", *(() if answer["name"] in OTHERWISE_SET else ("value",)))
            answer = {key: answer[key] for key in kept if key in answer}
        if isinstance(answer, Mapping) and "protocolData" in answer and answer["groupState"] in REBALANCING:
            answer = {**answer, "members": [{**one, "memberAssignment": ""} for one in answer["members"]]}
        if isinstance(answer, Mapping):
            return {key: self.read(one, key) for key, one in answer.items() if key not in LEFT_OUT}
        if name == "records":
            return self._records(answer)
        if isinstance(answer, list):
            if name == "synonyms":  # those of a topic's own; what stands behind depends on the brokers
                answer = [one for one in answer if one["source"] == OF_TOPIC]
            found = [self.read(one, name) for one in answer if not self._is_anothers(one)]
            return sorted(found, key=lambda one: json.dumps(one, sort_keys=True, default=str))
        if isinstance(answer, bool) or answer is None or isinstance(answer, float):
            return answer
        return self._number(answer, name) if isinstance(answer, int) else self._string(answer, name)

    def _is_anothers(self, one: Any) -> bool:
        """Whether an entry of a list is not of this run."""
        if isinstance(one, Mapping) and one.get("name") == "tagwire.record.dialect":
            return True
        names = [one[key] for key in NAMING if key in one] if isinstance(one, Mapping) else []
        return self._is_list and bool(names) and not str(names[0]).startswith(self._symbols.tag)

    def _records(self, answer: str | None) -> Any:
        if answer is None:
            return None
        return [self._of_records(one) for one in seen(base64.b64decode(answer))]

    def _of_records(self, one: Any) -> Any:
        if isinstance(one, dict):
            return {key: self._number(value, key) for key, value in one.items()}
        return [self._number(value, "") if isinstance(value, int) else value for value in one]

    def _number(self, answer: int, name: str) -> Any:
        if name in NODES:
            return answer if answer < 0 else "node"
        if name in _PRODUCERS:
            return answer if answer < 0 else self._producers.get(answer, "a producer")
        if name in _EPOCHS and answer > 0:
            return answer - self._symbols.older_epochs
        if name == "sessionId":
            return answer and "session"
        return "now" if abs(answer - self._symbols.now) < _DAY else answer

    def _string(self, answer: str, name: str) -> Any:
        if name == "topicId":
            return answer if answer == _NOBODY else self._topics.get(answer, "a topic")
        if name in _MEMBERS and answer:
            return self._members.get(answer, "a member" if len(answer) > 30 else answer)
        if name == "entityName" and answer == Address().of(self._symbols):
            return "an address"
        return answer.replace(self._symbols.tag, "")


def differing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ: paths, without the places in lists."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from differing(theirs.get(name, "-"), ours.get(name, "-"), f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for one, other in zip(theirs, ours):
            yield from differing(one, other, path)
    elif theirs != ours or type(theirs) is not type(ours):
        yield path


def codes(answer: Any) -> Iterator[int]:
    """All error codes of an answer."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("rrorCode"):
                yield value
            else:
                yield from codes(value)
    elif isinstance(answer, list):
        for one in answer:
            yield from codes(one)

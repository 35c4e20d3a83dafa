"""One broker in a conversation: what it is asked, by a connection that is opened anew where it was closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from tagwire import messages
from tagwire.errors import TagwireError

from ...broker.conftest import Wire
from .answers import codes
from .program import Program, Step, resolved

HUNG_UP: Final = "hung up"
SECONDS: Final = 10
SETTLING: Final = 3.0
_CONCURRENT: Final = 51
_MOVING: Final = frozenset({14, 15, 16, _CONCURRENT})
"""Errors that say: in a moment."""

_CHANGES: Final = frozenset(
    {
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "CreateAcls",
        "DeleteAcls",
        "AlterUserScramCredentials",
    }
)
"""What Kafka's controller changes."""

_ENDING: Final = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


class Side:
    """What one broker has decided in one run; `Symbols` of its requests.

    Attributes:
        is_stuck: whether a transaction does not come to its end.
    """

    def __init__(self, bootstrap: str, tag: str, now: int, older_epochs: int = 0) -> None:
        self.tag = tag
        self.now = now
        self.older_epochs = older_epochs
        self.topic_ids: dict[str, str] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self.members: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.is_stuck = False
        self._bootstrap = bootstrap
        self._wire = Wire(bootstrap)

    def close(self) -> None:
        self._wire.close()

    def versions(self) -> dict[int, tuple[int, int]]:
        """Of each API that it serves."""
        answer = self._wire.ask(messages.ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
        return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}

    def prepare(self, program: Program) -> None:
        """Makes the program's topics; returns when they can be written to."""
        request = messages.CreateTopicsRequest
        topics = [
            {
                "name": self.tag + name,
                "numPartitions": partitions,
                "replicationFactor": 1,
                "configs": [{"name": key, "value": value} for key, value in configs.items()],
            }
            for name, (partitions, configs) in program.topics.items()
        ]
        made = self._ask(request.from_json({"topics": topics, "timeoutMs": 10_000}, 7), 7)
        assert {one["errorCode"] for one in made["topics"]} <= {0}, made
        self.topic_ids |= {one["name"].removeprefix(self.tag): one["topicId"] for one in made["topics"]}
        for name, (partitions, _) in program.topics.items():
            asked = [{"partitionIndex": index, "timestamp": -1} for index in range(partitions)]
            body = {"replicaId": -1, "topics": [{"name": self.tag + name, "partitions": asked}]}
            self._until(self._is_read, messages.ListOffsetsRequest.from_json(body, 5))

    def say(self, step: Step) -> Any:
        """The answer as JSON has it; tried again while it says that something is under way."""
        until = time.monotonic() + SETTLING
        while True:
            answer = self._answer(step)
            if _MOVING.isdisjoint(codes(answer)) or time.monotonic() > until:
                break
            time.sleep(0.02)
        if isinstance(answer, dict):
            self._learn(step, answer)
            if step.api in _CHANGES:
                self._publish()
            if step.api == "EndTxn" and answer["errorCode"] == 0:
                self._settle(step)
        return answer

    def _answer(self, step: Step) -> Any:
        kind = getattr(messages, f"{step.api}Request")
        request = kind.from_json(resolved(step.body, self), step.version)
        try:
            if step.api == "Produce" and step.body["acks"] == 0:
                self._wire.send(request, step.version)
                return self._ask(messages.ApiVersionsRequest(), 0) and "nothing"
            return self._ask(request, step.version)
        except (OSError, TagwireError) as error:
            if isinstance(error, TimeoutError):
                raise
            self._wire.close()
            self._wire = Wire(self._bootstrap)
            return HUNG_UP

    def _ask(self, request: Any, version: int) -> Any:
        answer = self._wire.ask(request, version)
        return answer.to_json(version)

    def _learn(self, step: Step, answer: dict[str, Any]) -> None:
        if step.learns is None:
            return
        kind, name = step.learns
        if kind == "producer" and answer["errorCode"] == 0:
            self.producers[name] = answer["producerId"], answer["producerEpoch"]
        elif kind == "session" and answer.get("sessionId"):
            self.numbers[name] = answer["sessionId"]
        elif kind == "member" and answer.get("memberId"):
            self.members[name] = answer["memberId"]
        if kind == "member" and answer.get("generationId", -1) >= 0:
            self.numbers[name] = answer["generationId"]
        elif kind == "member" and "memberEpoch" in answer and answer["errorCode"] == 0:
            self.numbers[name] = answer["memberEpoch"]

    def _settle(self, step: Step) -> None:
        """Kafka writes the markers after it has answered; for ever, where an administrator's of a later epoch stands
        before them."""
        asked = messages.DescribeTransactionsRequest(transactional_ids=[resolved(step.body, self)["transactionalId"]])
        end = time.monotonic() + SETTLING
        while self._wire.ask(asked, 0).transaction_states[0].transaction_state in _ENDING and not self.is_stuck:
            self.is_stuck = time.monotonic() > end
            time.sleep(0.02)

    def _publish(self) -> None:
        """Waits until what was changed has come to the broker: Kafka's controller answers before that. What is changed
        after it comes after it; a second change shows that the first has been dealt with."""
        for value in (1.0, 2.0):
            entity = [{"entityType": "client-id", "entityName": f"{self.tag}barrier"}]
            ops = [{"key": "consumer_byte_rate", "value": 1e9 + value, "remove": False}]
            self._ask(messages.AlterClientQuotasRequest.from_json({"entries": [{"entity": entity, "ops": ops}]}, 0), 0)
            matched = {"entityType": "client-id", "matchType": 0, "match": f"{self.tag}barrier"}
            asked = messages.DescribeClientQuotasRequest.from_json({"components": [matched]}, 0)
            self._until(self._is_told, asked, 1e9 + value)

    def _is_read(self, request: Any) -> bool:
        return not any(codes(self._ask(request, 5)))

    def _is_told(self, request: Any, value: float) -> bool:
        entries = self._ask(request, 0)["entries"] or ()
        return [one["value"] for entry in entries for one in entry["values"]] == [value]

    def _is_coordinated(self, request: Any) -> bool:
        found: int = self._wire.ask(request, 4).coordinators[0].error_code
        return found == 0

    def _until(self, holds: Callable[..., bool], *about: Any) -> None:
        end = time.monotonic() + SECONDS
        while not holds(*about):
            assert time.monotonic() < end, f"at {self._bootstrap} it did not come about"
            time.sleep(0.02)

    def warm_up(self) -> None:
        """Has the internal topics made, and the coordinators at work."""
        for key_type in (0, 1):
            asked = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["warm"])
            self._until(self._is_coordinated, asked)
        begun = messages.InitProducerIdRequest(transactional_id="warm", transaction_timeout_ms=10_000)
        self._until(lambda: self._wire.ask(begun, 4).error_code == 0)
        listed = messages.DescribeGroupsRequest(groups=["warm"])
        self._until(lambda: self._wire.ask(listed, 5).groups[0].error_code == 0)

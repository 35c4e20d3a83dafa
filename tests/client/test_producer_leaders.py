"""Leaders move, lose answers and refuse: no record is appended twice, and none that is delivered is missing."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tagwire.client import Client, Producer
from tagwire.errors import Error, TagwireError

from .fake_broker import Close, FakeCluster, FakePartition, Late, LostResponse, NoResponse
from .produce_responses import produced, refusing
from .stored import values_in

PARTITIONS = 3
RECORDS = 90


class Leaders:
    """What becomes of Produce requests, by chance."""

    def __init__(self, cluster: FakeCluster, logs: list[FakePartition], chance: random.Random) -> None:
        self.cluster = cluster
        self.logs = logs
        self.chance = chance

    def fates(self) -> list[Any]:
        moving = [self.moving(Error.NOT_LEADER_OR_FOLLOWER), self.moving(Error.REQUEST_TIMED_OUT)]
        appending = [
            self.appending(error) for error in (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        ]
        refused = [
            refusing(error)
            for error in (
                Error.NOT_ENOUGH_REPLICAS,
                Error.INVALID_RECORD,
                Error.MESSAGE_TOO_LARGE,
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                Error.UNKNOWN_PRODUCER_ID,
                Error.INVALID_PRODUCER_EPOCH,
            )
        ]
        every = [*[None] * 6, Close(), LostResponse(), NoResponse(), Late(0.2), *moving, *appending, *refused]
        return [self.chance.choice(every) for _ in range(self.chance.randrange(25))]

    def move_one(self) -> None:
        log = self.chance.choice(self.logs)
        log.leader, log.epoch = 1 - log.leader, log.epoch + 1

    def moving(self, error: Error) -> Callable[[Any], Any]:
        """A partition moves, and nothing is appended."""

        def action(message: Any) -> Any:
            self.move_one()
            return produced(message, error_code=error, base_offset=-1)

        return action

    def appending(self, error: Error) -> Callable[[Any], Any]:
        """Everything is appended and refused all the same."""

        def action(message: Any) -> Any:
            with self.cluster.lock:
                for topic in message.topic_data:
                    for data in topic.partition_data:
                        self.logs[data.index].append(bytes(data.records))
            if self.chance.random() < 0.4:
                self.move_one()
            return produced(message, error_code=error, base_offset=-1)

        return action


@pytest.mark.parametrize("seed", range(16))
def test_no_record_is_appended_twice_and_none_that_is_delivered_is_missing(seed: int) -> None:
    chance = random.Random(seed)
    with FakeCluster(nodes=2) as cluster:
        logs = cluster.topic("t", PARTITIONS)
        for log in logs:
            log.epoch = 1
        cluster.script("Produce", *Leaders(cluster, logs, chance).fates())
        with Client(cluster.bootstrap, timeout=chance.choice([0.3, 0.6, 2])) as client:
            retries, timeout = chance.choice([0, 1, 3, 100]), chance.choice([0.5, 1, 20])
            producer = Producer(client, batch_bytes=300, linger=0, retries=retries, timeout=timeout)
            deliveries = []
            for number in range(RECORDS):
                value = b"%d" % number + b" " * 60
                deliveries.append(producer.send("t", value, partition=number % PARTITIONS))
                if number % 30 == 29 and chance.random() < 0.5:
                    with suppress(TagwireError):
                        producer.flush()
            delivered = [number for number, found in enumerate(deliveries) if found.exception(60) is None]
            with suppress(TagwireError):
                producer.close()
        stored = [[int(value or b"") for value in values_in(log)] for log in logs]
    for numbers in stored:
        assert len(numbers) == len(set(numbers))
        # A batch that was failed may still come late, from a connection that nobody listens to any more.
        in_order = [number for number in numbers if number in delivered]
        assert in_order == sorted(in_order)
    assert set(delivered) <= {number for numbers in stored for number in numbers}
    for number in delivered:
        offset = deliveries[number].result().offset
        assert offset < 0 or stored[number % PARTITIONS][offset] == number

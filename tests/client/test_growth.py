"""Work that grows as what it is about does, and not as its square: counted in comparisons of names."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, NewTopic, Producer, Reader
from tagwire.client.admin import groups as admin_groups
from tagwire.client.consuming.topic_names import TopicNames
from tagwire.errors import CorruptRecordError, Error, KafkaError, ProducerFencedError, TagwireError
from tagwire.records import Record

from .fake_broker import FakeCluster
from .produce_responses import refusing

FEW, MANY = 40, 160
LINEAR = 1.5 * MANY / FEW


class Counted(str):
    """A name whose comparisons are counted, those of all of them together."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def comparisons(work: Callable[[], object]) -> int:
    Counted.compared = 0
    work()
    return Counted.compared


def test_topics_are_created_with_as_much_work_for_each_however_many_there_are() -> None:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:

        def create(count: int) -> int:
            new = [NewTopic(Counted(f"topic-{count}-{number}")) for number in range(count)]
            return comparisons(lambda: admin.create_topics(new, validate_only=True))

        few, many = create(FEW), create(MANY)
    assert few > 0
    assert many <= LINEAR * few


def test_groups_are_described_for_their_lag_with_as_much_work_for_each_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listing = admin_groups.GroupListing
    monkeypatch.setattr(admin_groups, "GroupListing", lambda group, *more: listing(Counted(group), *more))
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics("t")

        def told(count: int) -> int:
            for number in range(count):
                admin.alter_group_offsets(f"group-{number}", {("t", 0): 0})
            return comparisons(lambda: admin.group_lags(members=True))

        few, many = told(FEW), told(MANY)
        assert len(admin.group_lags(members=True)) == MANY
    assert few > 0
    assert many <= LINEAR * few


def test_names_of_topics_are_taken_with_as_much_work_for_each_however_many_there_are() -> None:

    def resolve(count: int) -> int:
        ids = [UUID(int=number + 1) for number in range(count)]
        told = [SimpleNamespace(topic_id=at, error_code=0, name=Counted(f"topic-{at.int}")) for at in ids]

        async def request_any(message: Any, deadline: float) -> tuple[None, Any]:
            return None, SimpleNamespace(topics=told)

        names = TopicNames(SimpleNamespace(request_any=request_any))  # type: ignore[arg-type]
        counted = comparisons(lambda: asyncio.run(names.resolve(ids, 0.0)))
        assert len(names.known) == count
        return counted

    assert resolve(MANY) <= LINEAR * max(resolve(FEW), FEW)


def depth_of(kind: type[TagwireError], call: Callable[[], object]) -> int:
    """How many frames the traceback has of what a call raises."""
    with pytest.raises(kind) as caught:
        call()
    return len(list(traceback.walk_tb(caught.value.__traceback__)))


@pytest.mark.parametrize("of", ["deliveries", "rows", "poll", "reader", "fenced"])
def test_an_error_that_is_raised_again_and_again_does_not_gather_where_it_was_raised(of: str) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(FakeCluster())
        (log,) = cluster.topic("t")
        log.append(bytearray(records.write([Record(None, b"0")])))
        log.batches[0] = (*log.batches[0][:2], log.batches[0][2][:-1] + b"x")
        kind: type[TagwireError] = CorruptRecordError
        if of in ("deliveries", "rows"):
            kind = KafkaError
            cluster.script("Produce", refusing(Error.TOPIC_AUTHORIZATION_FAILED))
            producer = stack.enter_context(Producer(cluster.bootstrap))
            rows = pa.RecordBatch.from_pydict({"value": [b"v"]})
            call: Callable[[], object] = (
                producer.send("t", b"v").result if of == "deliveries" else producer.send_arrow("t", rows).result
            )
            with pytest.raises(KafkaError):
                producer.flush()
        elif of == "poll":
            consumer = stack.enter_context(Consumer(cluster.bootstrap))
            consumer.assign({("t", 0): 0})
            call = partial(consumer.poll, 5)
        elif of == "reader":
            call = partial(next, stack.enter_context(Reader(cluster.bootstrap, {("t", 0): 0})))
        else:
            kind = ProducerFencedError
            broker = stack.enter_context(Broker(fsync="never"))
            with Admin(broker.bootstrap) as admin:
                admin.create_topics([NewTopic("t", num_partitions=1)])
            options = {"transactional_id": "id"}
            producer = stack.enter_context(Producer(broker.bootstrap, **options))  # type: ignore[arg-type]
            producer.init_transactions()
            producer.begin_transaction()
            with Producer(broker.bootstrap, **options) as other:  # type: ignore[arg-type]
                other.init_transactions()
            with pytest.raises(ProducerFencedError):
                producer.send_offsets({("t", 0): 0}, "g")
            call = partial(producer.send, "t", b"v")
        depth_of(kind, call)
        assert depth_of(kind, call) == depth_of(kind, call)

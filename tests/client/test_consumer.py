"""A consumer's face: what records become on their way, Ctrl-C, and the end."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import Admin, Client, Consumer, OffsetAndMetadata, Producer, TopicPartition
from tagwire.client.fetch_collector import FetchCollector
from tagwire.errors import (
    ConfigError,
    ConsumerStateError,
    CorruptRecordError,
    DecodeError,
    ReadOnlyError,
    TagwireError,
)
from tagwire.records import HeaderEntry, HeaderRegister, HeaderSerdes, Record

from .fake_broker import FakeCluster

SECONDS = 30.0
AT = TopicPartition("t", 0)


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics("t")
        yield broker.bootstrap


def fill(bootstrap: str, count: int, **options: Any) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send("t", b"%d" % number, **options)


def consumer_of(bootstrap: str | Client, **options: Any) -> Consumer:
    consumer = Consumer(bootstrap, **{"offset_reset": "earliest", **options})
    consumer.assign("t")
    return consumer


def offsets(found: list[Record]) -> list[int]:
    return [record.offset for record in found]


def test_ctrl_c_while_it_waits_loses_nothing(bootstrap: str) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job has ignored
    try:
        with consumer_of(bootstrap) as consumer:
            timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(SECONDS)
            timer.join()
            fill(bootstrap, 10)
            assert offsets(consumer.consume(10, SECONDS)) == [*range(10)]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("call", ["poll", "consume", "iterated", "batch"])
def test_what_an_interrupted_call_took_is_given_by_the_next_one(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    fill(bootstrap, 30)
    calls: dict[str, Any] = {
        "poll": lambda: consumer.poll(SECONDS),
        "consume": lambda: consumer.consume(10, SECONDS),
        "iterated": lambda: next(iter(consumer)),
        "batch": lambda: consumer.poll_batch(SECONDS),
    }
    with consumer_of(bootstrap, max_poll_records=10) as consumer:
        assert offsets(consumer.poll(SECONDS)) == [*range(10)]
        for name in ("records", "batch"):
            whole = getattr(FetchCollector, name)

            def interrupted(collector: FetchCollector, *arguments: Any, whole: Any = whole, **named: Any) -> Any:
                found = whole(collector, *arguments, **named)
                if found:
                    raise KeyboardInterrupt
                return found

            monkeypatch.setattr(FetchCollector, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            calls[call]()
        monkeypatch.undo()
        assert consumer.position(AT) == 10
        assert offsets(consumer.consume(20, SECONDS)) == [*range(10, 30)]


def test_interceptors_see_records_and_commits(bootstrap: str) -> None:
    fill(bootstrap, 3)
    told: list[Mapping[TopicPartition, OffsetAndMetadata]] = []

    class Interceptor:
        def __call__(self, record: Record) -> Record:
            return Record(record.key, b"seen " + (record.value or b""))  # and forgets where it came from

        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            told.append(offsets)

    with consumer_of(bootstrap, group="g", auto_commit=False, interceptors=[Interceptor()]) as consumer:
        for record in consumer:
            assert record.value == b"seen 0"
            consumer.commit()
            break
        assert [offset.offset for offset in told[0].values()] == [1]
        assert [record.value for record in consumer.consume(2, SECONDS)] == [b"seen 1", b"seen 2"]


def test_header_values_become_objects_and_headers_stay_as_they_are(bootstrap: str) -> None:
    fill(bootstrap, 1, headers=[("attempt", b"3"), ("plain", b"p")])
    fill(bootstrap, 1, headers=[("attempt", b"many")])
    serdes = HeaderSerdes({"attempt": (lambda value: str(value).encode(), int)})
    with consumer_of(bootstrap, header_serdes=serdes) as consumer:
        (record,) = consumer.consume(1, SECONDS)
        assert record.headers == (("attempt", 3), ("plain", b"p"))
        with pytest.raises(ReadOnlyError):
            record.set_header("attempt", b"4")
        for _ in range(2):
            with pytest.raises(DecodeError, match="t-0@1: header 'attempt'"):
                consumer.poll(SECONDS)
        consumer.seek(AT, 2)
        assert consumer.poll(0.1) == []


def test_topics_with_int_keyed_headers_are_read_with_names() -> None:
    register = HeaderRegister([HeaderEntry(1_114_000, "app.name")], name="headers.toml")
    with FakeCluster() as cluster:
        (log,) = cluster.topic("t")
        log.dialect = "int-headers"
        with Producer(cluster.bootstrap, dialect="int-headers", register=register, idempotence=False) as producer:
            producer.send("t", b"v", headers=[("app.name", b"shop")])
        with consumer_of(cluster.bootstrap, dialect="int-headers", register=register) as consumer:
            (record,) = consumer.consume(1, SECONDS)
    assert record.headers == (("app.name", b"shop"),)


def test_arrow_batches_have_the_columns_that_are_asked_for(bootstrap: str) -> None:
    fill(bootstrap, 3, timestamp=1_700_000_000_123)
    with consumer_of(bootstrap, columns=("value", "timestamp"), timestamp_unit="us") as consumer:
        batch = next(consumer.batches())
    assert batch.schema.names == ["value", "timestamp"]
    assert batch.schema.field("timestamp").type == pa.timestamp("us", "UTC")
    assert batch.column("value").to_pylist() == [b"0", b"1", b"2"]


def test_a_batch_that_is_broken_is_told_until_it_is_sought_over() -> None:
    with FakeCluster() as cluster:
        (log,) = cluster.topic("t")
        log.append(records.write([Record(None, b"0")]))
        log.append(bytearray(records.write([Record(None, b"1")])))
        log.batches[1] = (1, 2, log.batches[1][2][:-1] + b"x")
        log.append(records.write([Record(None, b"2")]))
        with consumer_of(cluster.bootstrap) as consumer:
            assert offsets(consumer.consume(1, SECONDS)) == [0]
            for _ in range(2):
                with pytest.raises(CorruptRecordError, match="t-0@1"):
                    consumer.poll(SECONDS)
            consumer.seek(AT, 2)
            assert offsets(consumer.consume(1, SECONDS)) == [2]


def test_a_consumer_begins_so_long_ago_as_it_is_told_and_where_it_is_assigned(bootstrap: str) -> None:
    now = int(time.time() * 1000)
    fill(bootstrap, 2, timestamp=now - 7_200_000)
    fill(bootstrap, 2, timestamp=now)
    with consumer_of(bootstrap, offset_reset="by_duration:PT1H") as consumer:
        assert offsets(consumer.consume(2, SECONDS)) == [2, 3]
        consumer.assign({AT: datetime.fromtimestamp((now - 3_600_000) / 1000, UTC)})
        assert offsets(consumer.consume(2, SECONDS)) == [2, 3]


def test_a_consumer_without_anything_to_read_or_closed_says_so(bootstrap: str) -> None:
    with Consumer(bootstrap, group="g") as consumer:
        with pytest.raises(ConsumerStateError, match=r"call subscribe\(\) or assign\(\) first"):
            consumer.poll()
        with pytest.raises(ConfigError, match="one topic or more, or pattern="):
            consumer.subscribe([])
        consumer.subscribe("t")
        with pytest.raises(ConsumerStateError, match=r"topics are subscribed to.*call unsubscribe\(\) first"):
            consumer.assign("t")
        consumer.unsubscribe()
        consumer.assign("t")
        assert consumer.assignment() == {AT}
    with pytest.raises(ConsumerStateError, match="the consumer is closed"):
        consumer.poll()
    consumer.close()


def test_an_error_in_the_loop_is_raised_and_the_end_commits_what_was_given(bootstrap: str) -> None:
    fill(bootstrap, 10)
    with pytest.raises(ZeroDivisionError), consumer_of(bootstrap, group="g") as consumer:  # noqa: PT012
        for record in consumer:
            if record.offset == 4:
                raise ZeroDivisionError
    with Consumer(bootstrap, group="g") as consumer:
        assert consumer.committed(AT)[AT].offset == 5


def test_a_timeout_that_is_none_does_not_end_a_consumer_without_its_commit(bootstrap: str) -> None:
    fill(bootstrap, 10)
    consumer = consumer_of(bootstrap, group="no-timeout")
    given = consumer.poll(SECONDS)
    with pytest.raises(ConfigError, match="timeout"):
        consumer.close("1s")  # type: ignore[arg-type]
    consumer.close()
    with consumer_of(bootstrap, group="no-timeout") as other:
        assert other.committed([("t", 0)])["t", 0].offset == len(given) > 0


def test_any_call_may_wait_for_ever(bootstrap: str) -> None:
    fill(bootstrap, 10)
    consumer = consumer_of(bootstrap, group="for-ever")
    assert len(consumer.poll(math.inf)) == 10
    consumer.commit({("t", 0): 5}, timeout=math.inf)
    assert consumer.position(("t", 0), math.inf) == 10
    consumer.close(math.inf)
    with consumer_of(bootstrap, group="for-ever") as other:
        assert other.committed(timeout=math.inf)["t", 0].offset == 10


def test_a_callback_that_raises_is_raised_from_poll_after_the_others(bootstrap: str) -> None:
    called: list[str] = []

    def refuse(*_: object) -> None:
        called.append("refused")
        raise ZeroDivisionError

    with consumer_of(bootstrap, group="g") as consumer:
        consumer.commit_async({AT: 1}, refuse)
        consumer.commit_async({AT: 2}, lambda *_: called.append("called"))
        with pytest.raises(ZeroDivisionError):
            consumer.commit({AT: 3})
    assert called == ["refused", "called"]


def test_brokers_that_are_away_are_waited_for_and_the_end_is_in_bounded_time() -> None:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics("t")
        client = Client(broker.bootstrap, timeout=1.0)
        consumer = Consumer(client, group="g", session_timeout=6.0)
        consumer.subscribe("t")
        consumer.poll(0.5)
    assert consumer.poll(0.5) == []
    with pytest.raises(TagwireError):
        consumer.commit({AT: 1}, timeout=0.5)
    consumer.close(1.0)
    client.close()

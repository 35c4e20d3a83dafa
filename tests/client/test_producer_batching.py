"""What goes out when, who is told, and what waits for what: batches, callbacks, memory, threads, the end."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from tagwire import messages, records
from tagwire.client import Client, Delivery, Producer, ProducerOptions, RecordMetadata, partition_of
from tagwire.client.config import ProduceSettings
from tagwire.client.producing.settings import settings_of
from tagwire.errors import ConfigError, Error, KafkaError, RequestTimeoutError, TagwireError
from tagwire.records import Record

from .fake_broker import SERVED, FakeCluster, Late, Silence
from .produce_responses import produced, refusing
from .stored import values_in


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tagwire-producer"]


def test_a_record_goes_out_by_itself(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, linger=0.05) as producer:
        assert producer.send("t", b"v").result(10).offset == 0
    assert values_in(log) == [b"v"]


def test_what_comes_within_linger_goes_out_together_and_not_before(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, linger=1.0) as producer:
        producer.send("t", b"0").result(10)
        first = producer.send("t", b"1")
        last = [producer.send("t", b"%d" % number) for number in range(2, 9)][-1]
        last.result(10)
        assert first.done()
    assert [after - base for base, after, _ in log.batches] == [1, 8]


def test_what_lingers_for_longer_than_a_batch_has_time_has_as_much_time_beside_it() -> None:
    assert settings_of(ProduceSettings(), {"linger": 200})[0].timeout == 320
    assert settings_of(ProduceSettings(linger=120.0), {})[0].timeout == 240
    assert settings_of(ProduceSettings(), {"linger": 119})[0].timeout == 120


def test_a_batch_that_would_have_no_time_left_after_it_lingered_is_refused(cluster: FakeCluster) -> None:
    with pytest.raises(ConfigError, match=r"timeout=5: .* linger=5 seconds"):
        Producer(cluster.bootstrap, linger=5, timeout=5)
    told = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 120_000, "delivery.timeout.ms": 120_000}
    with pytest.raises(ConfigError, match=r"timeout=120: .* linger=120 seconds"):
        Producer(told)  # also where that is the default
    properties = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 900, "delivery.timeout.ms": 700}
    with pytest.raises(ConfigError, match=r"timeout=0\.7: .* linger=0\.9 seconds"):
        Producer(properties)


def test_a_full_batch_does_not_wait(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, linger=3600, batch_bytes=1000) as producer:
        assert producer.send("t", b"x" * 2000).result(10).offset == 0


def test_flush_does_not_wait_for_linger(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, linger=3600) as producer:
        delivery = producer.send("t", b"v")
        producer.flush(10)
        assert delivery.result(0).offset == 0


def test_callbacks_are_told_once_whatever_becomes_of_the_record(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topic("t")
    told: list[tuple[str, Delivery]] = []
    with Producer(cluster.bootstrap, linger=3600) as producer:
        good = producer.send("t", b"v")
        good.add_done_callback(lambda delivery: told.append(("before", delivery)))
        producer.flush()
        good.add_done_callback(lambda delivery: told.append(("after", delivery)))
        cluster.script("Produce", refusing(Error.INVALID_RECORD))
        bad = producer.send("t", b"w")
        bad.add_done_callback(lambda delivery: told.append(("bad", delivery)))
        other = producer.send("t", b"x")
        with caplog.at_level(logging.CRITICAL, "tagwire.client"):
            other.add_done_callback(lambda delivery: told[99])  # raises
            other.add_done_callback(lambda delivery: told.append(("other", delivery)))
            with pytest.raises(KafkaError):
                producer.flush()
        producer.send("t", b"y")
    assert [name for name, _ in told] == ["before", "after", "bad", "other"]
    assert [delivery is expected for (_, delivery), expected in zip(told, (good, good, bad, other))] == [True] * 4
    assert isinstance(told[2][1].exception(0), KafkaError)


def test_a_callback_cannot_wait_for_its_own_producer(cluster: FakeCluster) -> None:
    cluster.topic("t")
    told: list[str] = []

    def wait(delivery: Delivery) -> None:
        assert delivery.result().offset == 0
        later = producer.send("t", b"later")
        for call in (
            producer.flush,
            lambda: producer.send("unseen", b"v"),
            lambda: later.result(10),
            lambda: producer.send("t", bytes(5000)),  # for which there is no room
        ):
            try:
                call()
            except TagwireError as error:
                told.append(str(error))

    with Producer(cluster.bootstrap, buffer_memory=5000) as producer:
        delivery = producer.send("t", b"v")
        delivery.add_done_callback(wait)
        producer.flush()
        producer.send("t", b"w").result(10)
    assert told == ["a callback cannot wait for the producer whose thread runs it"] * 4


def test_a_process_that_is_forked_off_is_told_to_make_its_own(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, linger=3600) as producer:
        delivery = producer.send("t", b"v")
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            for call in (producer.flush, delivery.result):
                try:
                    call()
                except TagwireError as error:
                    os.write(writer, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        assert os.read(reader, 1000).count(b"each process makes its own") == 2
        os.close(reader)
        producer.flush(10)
        assert delivery.result(0).offset == 0


def test_a_process_that_is_forked_off_while_a_batch_changes_hands_is_told_as_well(cluster: FakeCluster) -> None:
    """Whoever holds the lock then is not in that process, to let go of it."""
    cluster.topic("t")
    with Producer(cluster.bootstrap, linger=3600) as producer:
        delivery = producer.send("t", b"v")
        lock, taken, over = delivery._batch.completion.lock, threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                taken.set()
                over.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        taken.wait()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            with contextlib.suppress(TagwireError):
                delivery.result()
            os._exit(0)
        over.set()
        holder.join()
        assert os.waitpid(child, 0)[1] == 0


def test_a_producer_takes_no_more_than_its_memory_allows(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Late(0.3))
    with Producer(cluster.bootstrap, batch_bytes=1000, buffer_memory=5000) as producer:
        for number in range(50):
            producer.send("t", b"%d" % number + b" " * 900)
    assert len(values_in(log)) == 50


def test_a_sender_that_finds_no_room_is_told_after_max_block(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Late(1.0))
    with Producer(cluster.bootstrap, buffer_memory=5000, max_block=0.1, linger=3600) as producer:
        producer.send("t", b"x" * 4000)
        with pytest.raises(RequestTimeoutError, match=r"allows 5000; .* no room for 4036 more within 0\.1 s"):
            producer.send("t", b"y" * 4000)
        producer.flush()
        producer.send("t", b"z" * 9000)  # alone, even one that is larger than all the room
    assert [len(value or b"") for value in values_in(log)] == [4000, 9000]


@pytest.mark.parametrize("is_arrow", [True, False], ids=["rows", "a batch"])
def test_what_waited_for_room_has_all_its_time_after_that(cluster: FakeCluster, is_arrow: bool) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Silence(), Late(0.4))
    with Client(cluster.bootstrap) as client:
        producer = Producer(client, buffer_memory=5000, timeout=1.0, linger=0)
        first = producer.send("t", b"x" * 4000)
        if is_arrow:
            second: Any = producer.send_arrow("t", pa.record_batch({"value": [b"y" * 4000]}))
        else:
            second = producer.send_batch("t", 0, records.write([Record(None, b"y" * 4000)]))
        assert isinstance(first.exception(0), RequestTimeoutError)
        assert second.exception(10) is None
        with pytest.raises(RequestTimeoutError):
            producer.close()
    assert values_in(log) == [b"y" * 4000]


def test_metadata_and_room_are_waited_for_within_one_max_block(cluster: FakeCluster) -> None:
    for name in ("t", "u", "v"):
        cluster.topic(name)
    cluster.script("Produce", *[refusing(Error.NOT_ENOUGH_REPLICAS)] * 100)
    data = records.write([Record(None, b"y" * 4000)])
    with Producer(cluster.bootstrap, buffer_memory=5000, max_block=2.0, linger=0) as producer:
        producer.send("t", b"x" * 4000)
        calls: list[Callable[[], object]] = [
            lambda: producer.send("u", b"y" * 4000),
            lambda: producer.send_batch("v", 0, data),
        ]
        for call in calls:
            cluster.script("Metadata", Late(1.3))
            began = time.monotonic()
            with pytest.raises(RequestTimeoutError, match="no room"):
                call()
            assert time.monotonic() - began < 3.2
        with contextlib.suppress(TagwireError):
            producer.close(0)


def test_many_threads_keep_each_its_order(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=2000, linger=0) as producer:

        def send(who: int) -> None:
            for number in range(300):
                producer.send("t", b"%d %d" % (who, number))

        workers = [threading.Thread(target=send, args=(who,)) for who in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    found = [tuple(map(int, (value or b"").split())) for value in values_in(log)]
    for who in range(4):
        assert [number for own, number in found if own == who] == list(range(300))


def test_topics_can_be_compressed_differently(cluster: FakeCluster) -> None:
    logs = {name: cluster.topic(name)[0] for name in ("plain", "packed", "other")}
    options: dict[str, Any] = {"compression": "lz4", "topic_compression": {"plain": "none", "packed": "zstd"}}
    with Producer(cluster.bootstrap, **options) as producer:
        for name in logs:
            producer.send(name, b"v")
    found = {name: next(records.batch_headers(log.batches[0][2])).compression for name, log in logs.items()}
    assert found == {"plain": "none", "packed": "zstd", "other": "lz4"}
    with pytest.raises(ConfigError, match="topic_compression of 't'=brotli"):
        Producer("127.0.0.1:1", topic_compression={"t": "brotli"})


def test_a_leader_that_a_refusal_names_is_followed_without_asking_for_metadata() -> None:
    with FakeCluster(nodes=2, served={**SERVED, 0: (3, 12)}) as cluster:
        cluster.endpoints = True
        log = cluster.topic("t")[0]
        log.epoch = 1
        with Producer(cluster.bootstrap) as producer:
            producer.send("t", b"0").result(10)
            before = len(cluster.requests("Metadata"))
            log.leader, log.epoch = 1, 2
            producer.send("t", b"1").result(10)
            assert len(cluster.requests("Metadata")) == before
        assert values_in(log) == [b"0", b"1"]


def test_several_batches_that_a_refusal_names_the_leader_for_follow_it_at_once() -> None:
    with FakeCluster(nodes=2, served={**SERVED, 0: (3, 12)}) as cluster:
        cluster.endpoints = True
        log = cluster.topic("t")[0]
        log.epoch = 1
        with Producer(cluster.bootstrap, batch_bytes=100, linger=0) as producer:
            producer.send("t", b"0").result(10)
            before = len(cluster.requests("Metadata"))
            log.leader, log.epoch = 1, 2
            refused = produced_by_another(1, 2)

            def refused_late(message: Any) -> Any:
                time.sleep(0.3)
                return refused(message)

            cluster.script("Produce", refused_late, refused, refused)
            sent = [producer.send("t", b"%d" % number * 90) for number in range(1, 4)]
            assert [delivery.result(10).offset for delivery in sent] == [1, 2, 3]
            assert len(cluster.requests("Metadata")) == before


def test_a_leader_that_is_told_of_one_partition_leaves_another_to_be_asked_about() -> None:
    with FakeCluster(nodes=2, served={**SERVED, 0: (3, 12)}) as cluster:
        logs = cluster.topic("t", 2)
        for log in logs:
            log.leader, log.epoch = 0, 1
        with Producer(cluster.bootstrap, linger=0.2) as producer:
            for partition in range(2):
                producer.send("t", b"0", partition=partition)
            producer.flush()
            for log in logs:
                log.leader, log.epoch = 1, 2

            def tells_of_the_second(message: Any) -> Any:
                answer = produced_by_another(1, 2)(message)
                kind = messages.ProduceResponse.LeaderIdAndEpoch
                answer.responses[0].partition_responses[0].current_leader = kind()
                return answer

            cluster.script("Produce", tells_of_the_second)
            for partition in range(2):
                producer.send("t", b"1", partition=partition)
            producer.flush()
        asked = [node for node, api, _, _ in cluster.seen if api == "Produce"]
        assert (asked.count(0), [values_in(log) for log in logs]) == (2, [[b"0", b"1"]] * 2)


def produced_by_another(leader: int, epoch: int) -> Callable[[Any], Any]:
    """An action that refuses every partition of a Produce, since another broker leads it."""
    named = messages.ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    error = Error.NOT_LEADER_OR_FOLLOWER
    return lambda message: produced(message, error_code=error, base_offset=-1, current_leader=named)


def test_a_closed_producer_takes_nothing(cluster: FakeCluster) -> None:
    cluster.topic("t")
    producer = Producer(cluster.bootstrap)
    producer.send("t", b"v")
    producer.close()
    producer.close()
    for topic in ("t", "unseen"):
        with pytest.raises(TagwireError, match="the producer is closed"):
            producer.send(topic, b"w")
    assert not threads()


def test_what_closing_has_no_time_for_is_failed(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", Silence())
    producer = Producer(cluster.bootstrap)
    delivery = producer.send("t", b"v")
    with pytest.raises(RequestTimeoutError):
        producer.close(0.1)
    with pytest.raises(TagwireError, match="closed before this was delivered"):
        delivery.result(0)


def test_a_producer_that_nobody_holds_ends_its_thread(cluster: FakeCluster) -> None:
    cluster.topic("t")
    producer = Producer(cluster.bootstrap)
    producer.send("t", b"v").result(10)
    (thread,) = threads()
    del producer
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_the_client_of_a_producer_stays_usable_beside_it(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with Client(cluster.bootstrap) as client:
        with Producer(client) as producer:
            producer.send("t", b"v").result(10)
            client.close()
            producer.send("t", b"w").result(10)
            assert sorted(client.metadata().topics) == ["t"]
        assert client.list_offsets({("t", 0): -1}) == {("t", 0): 2}


def test_keyless_records_go_only_where_there_is_a_leader() -> None:
    with FakeCluster() as cluster:
        for log in cluster.topic("t", 4)[1:]:
            log.leader = -1
        with Producer(cluster.bootstrap, batch_bytes=100) as producer:
            deliveries = [producer.send("t", b"x" * 50) for _ in range(20)]
            producer.flush()
        assert {delivery.partition for delivery in deliveries} == {0}


def test_a_topic_made_anew_with_fewer_partitions_costs_no_more_records_than_were_on_their_way() -> None:
    with FakeCluster() as cluster:
        cluster.topic("t", 4)
        with Producer(cluster.bootstrap, linger=0, partitioner="murmur2_random") as producer:
            key = next(key for key in (b"%d" % n for n in range(100)) if partition_of(key, 4) == 3)
            assert producer.send("t", b"before", key=key).result(10).partition == 3
            (log,) = cluster.topic("t", 1)
            with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                producer.send("t", b"meanwhile", key=key).result(10)
            with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                producer.flush()
            assert producer.send("t", b"after", key=key).result(10).partition == 0
            with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                producer.send("t", b"nowhere", partition=3)
        assert values_in(log) == [b"after"]


def test_a_broker_that_has_not_heard_of_new_partitions_does_not_take_them_away() -> None:
    with FakeCluster() as cluster:
        logs = cluster.topic("t", 4)
        with Producer(cluster.bootstrap, linger=0) as producer:
            key = next(key for key in (b"%d" % n for n in range(100)) if partition_of(key, 4) == 3)
            assert producer.send("t", b"before", key=key).result(10).partition == 3
            cluster.topics["t"] = logs[:3]
            cluster.script("Produce", refusing(Error.NOT_LEADER_OR_FOLLOWER))
            producer.send("t", b"meanwhile", partition=0).result(10)
            assert sorted(producer.partitions_for("t")) == [0, 1, 2, 3]
            cluster.topics["t"] = logs
            assert producer.send("t", b"after", key=key).result(10).partition == 3


# Futures --------------------------------------------------------------------------------------------------------------


def test_a_delivery_is_waited_for_as_a_future_of_the_standard_library(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", None, refusing(Error.INVALID_RECORD))
    with Producer(cluster.bootstrap, linger=3600) as producer:
        good = producer.send("t", b"v")
        for wait in (good.result, good.exception):
            with pytest.raises(RequestTimeoutError, match="t-0: not delivered within 0 s"):
                wait(timeout=0)
        assert not good.done()
        producer.flush()
        assert (good.done(), good.exception(), good.result()) == (True, None, RecordMetadata("t", 0, 0))
        bad = producer.send("t", b"w")
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
        assert bad.done()
        with pytest.raises(KafkaError) as raised:
            bad.result()
        assert bad.exception() is raised.value


def test_whoever_waits_without_end_may_say_so_in_seconds(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", Late(0.2))
    endless = float("inf")
    options: ProducerOptions = {"buffer_memory": 100, "max_block": endless, "timeout": endless}
    with Client(cluster.bootstrap, timeout=endless) as client, Producer(client, **options) as producer:
        producer.send("t", b"v" * 60)
        delivery = producer.send("t", b"w" * 60)  # waits for room
        assert delivery.result(endless).offset == 1
        producer.send("t", b"x")
        producer.flush(endless)
        producer.close(endless)

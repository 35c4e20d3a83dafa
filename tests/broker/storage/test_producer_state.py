"""What a partition knows of producers: duplicates, gaps, epochs, transactions; told directly, and after restarts."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.storage.batch import Appended, Batch, Marker, Origin, batch_of
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log, open_log
from tagwire.broker.storage.producer_state import EXPIRES_AFTER_MS, WINDOW, ProducerState
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error, KafkaError
from tagwire.records import Record, batch_headers, write, write_end_transaction

PID = 7
SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=150)


def data_batch(sequence, count=1, pid=PID, epoch=0, transactional=False, timestamp=1000, size=10):
    rows = [Record(None, b"v" * size, timestamp=timestamp) for _ in range(count)]
    data = memoryview(
        write(rows, producer_id=pid, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)
    )
    return batch_of(next(batch_headers(data)), data)


def marker(commit, pid=PID, epoch=0, coordinator_epoch=0):
    data = memoryview(
        write_end_transaction(
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            producer_id=pid,
            producer_epoch=epoch,
            timestamp=1000,
        )
    )
    return batch_of(next(batch_headers(data)), data)


@pytest.fixture
def log(tmp_path):
    return create_log(Files(), tmp_path, SMALL)


def add(log, *batches):
    outcome = log.append(batches)
    log.flush()
    return [result.error if isinstance(result, KafkaError) else result.base_offset for result in outcome]


def test_batches_in_sequence_are_appended(log):
    assert add(log, data_batch(0, 3), data_batch(3, 2), data_batch(5)) == [0, 3, 5]


def test_each_of_the_last_five_batches_is_recognized_and_answered_with_its_first_offset(log):
    add(log, *(data_batch(2 * number, 2) for number in range(WINDOW)))
    assert add(log, *(data_batch(2 * number, 2) for number in range(WINDOW))) == [0, 2, 4, 6, 8]
    assert log.end_offset == 10


def test_an_older_batch_than_the_last_five_is_out_of_order(log):
    add(log, *(data_batch(number) for number in range(WINDOW + 1)))
    assert add(log, data_batch(0)) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_batch_sent_twice_at_once_is_stored_once(log):
    assert add(log, data_batch(0, 2), data_batch(0, 2), data_batch(2)) == [0, 0, 2]


@pytest.mark.parametrize("sequence", [0, 1, 2, 4, 100])
def test_a_gap_or_an_overlap_is_out_of_order_and_the_others_are_stored(log, sequence):
    add(log, data_batch(0, 3))
    outcome = add(log, data_batch(sequence, 2), data_batch(3, 2), data_batch(0, pid=8))
    assert outcome == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER, 3, 5]


def test_a_producer_that_is_not_known_starts_with_any_sequence(log):
    assert add(log, data_batch(42), data_batch(43), data_batch(41)) == [0, 1, Error.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_after_the_greatest_sequence_comes_0(log):
    assert add(log, data_batch(2**31 - 2, 3), data_batch(1)) == [0, 3]
    assert add(log, data_batch(2**31 - 2, 3)) == [0]


def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_0(log):
    add(log, data_batch(0, epoch=1))
    assert add(log, data_batch(1, epoch=0)) == [Error.INVALID_PRODUCER_EPOCH]
    assert add(log, data_batch(1, epoch=2)) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert add(log, data_batch(0, epoch=2), data_batch(1, epoch=2)) == [1, 2]


def test_what_is_not_written_is_not_known(tmp_path, failing_files):
    log = create_log(failing_files, tmp_path, SMALL)
    add(log, data_batch(0))
    failing_files.fail("write", times=1)
    outcome = log.append([data_batch(1), data_batch(1), data_batch(0)])
    assert [isinstance(result, Appended) for result in outcome] == [False, False, True]
    assert add(log, data_batch(1)) == [1]


def test_an_open_transaction_holds_back_readers_of_committed_records_until_its_marker(log):
    add(log, data_batch(0, pid=8), data_batch(0, transactional=True), data_batch(1, pid=8))
    assert (log.stable_offset, log.end_offset) == (1, 3)
    assert [h.base_offset for h in batch_headers(log.read(0, 10_000, committed=True))] == [0]
    assert [h.base_offset for h in batch_headers(log.read(0, 10_000))] == [0, 1, 2]
    add(log, marker(True))
    assert (log.stable_offset, log.end_offset) == (4, 4)
    assert log.fetch(0, 10_000).aborted() == []


def test_what_was_deleted_of_an_open_transaction_does_not_leave_the_stable_offset_before_the_start(log):
    add(log, data_batch(0, 2, transactional=True), data_batch(0, 3, pid=8))
    log.delete_before(4, lambda offset: None)
    assert (log.start_offset, log.stable_offset, log.end_offset) == (4, 4, 5)
    assert log.fetch(4, 1000, committed=True).view.stable == 4
    assert len(log.read(4, 1000, committed=True)) == 0
    add(log, marker(True))
    assert log.stable_offset == log.end_offset == 6


def test_an_aborted_transaction_is_told_to_whoever_reads_its_range(log):
    add(log, data_batch(0, pid=8), data_batch(0, 2, transactional=True), marker(False), data_batch(1, pid=8))
    (aborted,) = log.fetch(0, 10_000).aborted()
    assert tuple(aborted) == (PID, 1, 3, 4)
    assert log.fetch(2, 10_000).aborted() == [aborted]
    assert log.fetch(4, 10_000).aborted() == []
    assert log.fetch(0, 1).aborted() == []


def test_until_it_is_safe_a_marker_frees_nothing(log):
    add(log, data_batch(0, transactional=True))
    log.append([marker(True)])
    assert log.stable_offset == 0
    log.flush()
    assert log.stable_offset == 2


def test_a_batch_outside_its_producers_open_transaction_is_refused(log):
    add(log, data_batch(0, transactional=True))
    assert add(log, data_batch(1)) == [Error.INVALID_TXN_STATE]


def test_a_marker_of_an_older_epoch_or_coordinator_is_refused(log):
    add(log, data_batch(0, epoch=3, transactional=True), marker(True, epoch=3, coordinator_epoch=5))
    assert add(log, marker(True, epoch=2, coordinator_epoch=5)) == [Error.INVALID_PRODUCER_EPOCH]
    assert add(log, marker(True, epoch=3, coordinator_epoch=4)) == [Error.TRANSACTION_COORDINATOR_FENCED]


def test_a_marker_of_a_newer_epoch_ends_the_transaction_and_fences_its_producer(log):
    add(log, data_batch(0, transactional=True), marker(False, epoch=1))
    assert log.stable_offset == 2
    assert add(log, data_batch(1, transactional=True)) == [Error.INVALID_PRODUCER_EPOCH]
    assert add(log, data_batch(0, epoch=1, transactional=True)) == [2]


def test_producers_that_are_silent_for_a_day_are_forgotten_unless_a_transaction_is_open():
    producers = ProducerState()
    producers.take(Origin(1, 0, 0, 0), 0, 0, timestamp=1000)
    producers.take(Origin(2, 0, 0, 0, transactional=True), 1, 1, timestamp=1000)
    producers.expire(1000 + EXPIRES_AFTER_MS)
    assert {producer.producer_id for producer in producers} == {1, 2}
    producers.expire(1001 + EXPIRES_AFTER_MS)
    assert {producer.producer_id for producer in producers} == {2}


def known(log):
    """What a log knows of its producers, their last batches alone, and its aborted transactions."""
    producers = [
        replace(producer, sent=tuple(replace(sent, append_time_ms=-1) for sent in producer.sent[-1:]))
        for _, producer in sorted(log.known_producers().items())
    ]
    return producers, log.fetch(log.start_offset, 1 << 20).aborted() if log.end_offset else []


STEPS = st.lists(
    st.tuples(st.sampled_from(["data", "data", "transaction", "commit", "abort", "restart", "kill", "reload"]),
              st.integers(1, 3)),
    max_size=40,
)  # fmt: skip


@settings(max_examples=60)
@given(STEPS)
def test_what_is_known_of_producers_survives_restarts_and_kills(tmp_path_factory, steps):
    """The same steps without any restart leave the same knowledge: snapshots, logs and indexes agree."""
    directories = [tmp_path_factory.mktemp("log") for _ in range(2)]
    logs = [create_log(Files(), path, SMALL) for path in directories]
    sequences = {1: 0, 2: 0, 3: 0}
    for what, pid in steps:
        if what in ("restart", "kill", "reload"):
            if what == "restart":
                logs[1].close()
            else:
                logs[1].abandon("killed")
            if what == "reload":
                for path in directories[1].glob("*.snapshot"):
                    path.unlink()
            logs[1] = open_log(Files(), directories[1], SMALL, clean=what == "restart")
            continue
        known_producer = logs[0].known_producers().get(pid)
        is_open = known_producer is not None and known_producer.transaction_start is not None
        if what in ("commit", "abort"):
            batch: Batch = marker(what == "commit", pid=pid)
        else:
            batch = data_batch(sequences[pid], 2, pid=pid, transactional=is_open or what == "transaction", size=90)
            sequences[pid] += 2
        outcomes = [add(log, batch) for log in logs]
        assert outcomes[0] == outcomes[1]
        assert isinstance(outcomes[0][0], int)
    assert known(logs[0]) == known(logs[1])
    assert logs[0].stable_offset == logs[1].stable_offset


def test_a_marker_in_a_batch_is_read_as_one():
    origin = marker(False, epoch=2, coordinator_epoch=9).origin
    assert origin is not None
    assert origin.marker == Marker(commit=False, coordinator_epoch=9)


@pytest.mark.parametrize("harm", ["cut", "flip", "zeros", "newer version"])
def test_a_broken_snapshot_is_passed_over_and_deleted(tmp_path, harm):
    log = create_log(Files(), tmp_path, SMALL)
    add(log, *(data_batch(number, size=200) for number in range(30)))
    log.close()
    newest = max(tmp_path.glob("*.snapshot"))
    data = bytearray(newest.read_bytes())
    if harm == "cut":
        del data[-1:]
    elif harm == "flip":
        data[-1] ^= 1
    elif harm == "zeros":
        data[:] = bytes(len(data))
    else:
        data[1] = 9
    newest.write_bytes(data)
    again = open_log(Files(), tmp_path, SMALL, clean=True)
    assert not newest.exists()
    assert add(again, data_batch(29, size=200), data_batch(30, size=200)) == [29, 30]


@pytest.mark.parametrize("which", range(3))
def test_after_a_crash_no_snapshot_is_broken_wherever_it_was_and_each_segment_has_its_own(tmp_path, which):
    log = create_log(Files(), tmp_path, SMALL)
    add(log, *(data_batch(number, size=200) for number in range(60)))
    log.abandon("killed")
    snapshots = sorted(tmp_path.glob("*.snapshot"))
    whole = {path: path.read_bytes() for path in snapshots}
    broken = snapshots[which * (len(snapshots) - 1) // 2]
    broken.write_bytes(b"torn")
    again = open_log(Files(), tmp_path, SMALL, clean=False)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.snapshot")} == whole
    assert add(again, data_batch(59, size=200), data_batch(60, size=200)) == [59, 60]


def test_a_producer_is_known_whose_segments_go_after_a_crash_that_tore_the_snapshot(tmp_path):
    config = TopicConfig(segment_bytes=2000, retention_bytes=0)
    log = create_log(Files(), tmp_path, config)
    add(log, *(data_batch(number, size=200) for number in range(6)))
    add(log, *(data_batch(number, pid=2, size=200) for number in range(60)))
    log.abandon("killed")
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(b"torn")
    again = open_log(Files(), tmp_path, config, clean=False)
    again.delete_before(again.expired_before(2000), lambda start: None)
    start = again.start_offset
    again.abandon("killed")
    again = open_log(Files(), tmp_path, config, clean=False, recovery_point=start, start_offset=start)
    assert again.start_offset > 6
    assert add(again, data_batch(5, size=200)) == [5]


def test_snapshots_of_deleted_segments_are_deleted_with_the_next_one(tmp_path):
    log = create_log(Files(), tmp_path, TopicConfig(segment_bytes=2000, retention_bytes=0))
    add(log, *(data_batch(number, size=200) for number in range(60)))
    log.delete_before(log.expired_before(2000), lambda start: None)
    log.close()
    assert len(list(tmp_path.glob("*.snapshot"))) <= 2


def steps_of_an_append(producers):
    """How many instructions of Python it takes to note a batch where so many producers are known."""
    state = ProducerState()
    for producer_id in range(producers):
        state.take(Origin(producer_id, 0, 0, 0), producer_id, producer_id, timestamp=1000)
    state.keep()
    steps = 0

    def count(frame, event, argument):
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        state.check(Origin(producers, 0, 0, 0))
        state.take(Origin(producers, 0, 0, 0), producers, producers, timestamp=1000)
        assert state.first_open is None
        state.keep()
    finally:
        sys.settrace(before)
    return steps


def test_an_append_looks_at_no_producer_but_its_own_however_many_are_known():
    assert steps_of_an_append(1000) == steps_of_an_append(10) > 0

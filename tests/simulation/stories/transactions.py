"""Transactions."""

from tests.simulation.stories.telling import BOTH, innocent, planted


@planted("aborted-read")
def _an_aborted_record_is_read(story):
    story.transaction("t1", ("a", 0), abort="ok")
    story.poll((0, "a"))


@planted("aborted-read")
def _a_record_of_a_commit_that_failed_is_read(story):
    story.transaction("t1", ("a", 0), commit="fail")
    story.final((0, "a"), isolations=BOTH[1:])


@planted("uncommitted-read")
def _a_record_is_read_before_its_commit(story):
    story.transaction("t1", ("a", 0))
    story.poll((0, "a"))
    story.call("p", "commit_transaction", transaction="t1")


def _a_commit_comes_late(story, *, begun=True, **other):
    story.transaction("t1", ("a", 0), commit="ok")
    if begun:
        story.transaction("t2", ("b", 2))
    late = {"transactional_id": "id", "producer_id": 7, "epoch": 0, "commit": True, "version": 4} | other
    story.note("broker", "late_end", node=1, **late)
    if not begun:
        story.transaction("t2", ("b", 2))
    story.poll((0, "a"), (2, "b"))
    story.call("p", "abort_transaction", "fail", transaction="t2", transactional_id="id")


@innocent
def _a_commit_that_was_given_up_comes_late_and_commits_the_next_transaction(story):
    _a_commit_comes_late(story)


@planted("aborted-read")
def _a_commit_that_was_given_up_comes_late_and_each_transaction_has_an_epoch(story):
    _a_commit_comes_late(story, version=5)


@planted("aborted-read")
def _an_abort_that_was_given_up_comes_late(story):
    _a_commit_comes_late(story, commit=False)


@planted("aborted-read")
def _a_commit_of_another_id_comes_late(story):
    _a_commit_comes_late(story, transactional_id="another")


@planted("aborted-read")
def _a_commit_that_was_given_up_comes_before_the_next_transaction(story):
    _a_commit_comes_late(story, begun=False)


@innocent
def _a_record_is_read_while_its_commit_is_under_way(story):
    story.transaction("t1", ("a", 0))
    commit = story.begin("p", "commit_transaction", transaction="t1")
    story.poll((0, "a"))
    story.end(commit, "info")
    story.final((0, "a"))


@innocent
def _another_process_commits(story):
    story.transaction("t1", ("a", 0))
    story.call("driver", "end_transaction", transaction="t1", commit=True)
    story.poll((0, "a"))


@innocent
def _readers_of_uncommitted_records_see_what_is_open(story):
    story.transaction("t1", ("a", 0))
    story.poll((0, "a"), isolation="read_uncommitted")


@planted("partial-transaction")
def _half_of_a_transaction_counts(story):
    story.call("p", "begin", transaction="t1")
    story.send("a", 0, transaction="t1", kind="transactional")
    story.send("b", 0, transaction="t1", kind="transactional", partition=1)
    story.call("p", "commit_transaction", "info", transaction="t1")
    story.final((0, "a"), end=2)
    story.final((0, "b"), end=2, partition=1, isolations=BOTH[:1])
    story.final(end=2, partition=1, isolations=BOTH[1:])


@innocent
def _nothing_of_a_transaction_counts_whose_commit_nobody_saw(story):
    story.call("p", "begin", transaction="t1")
    story.send("a", 0, transaction="t1", kind="transactional")
    story.send("b", 0, transaction="t1", kind="transactional", partition=1)
    story.call("p", "commit_transaction", "info", transaction="t1")
    for name, partition in (("a", 0), ("b", 1)):
        story.final((0, name), end=2, partition=partition, isolations=BOTH[:1])
        story.final(end=2, partition=partition, isolations=BOTH[1:])


@planted("intermediate-read")
def _a_reader_sees_a_transaction_in_part(story):
    story.transaction("t1", ("a", 0), ("b", 1), commit="ok")
    story.send("c", 3)
    story.poll((0, "a"), (3, "c"))
    story.transaction("t2", ("d", 4), ("e", 5), ("f", 6), commit="ok", process="q")
    story.poll((4, "d"), (6, "f"), process="e")


@innocent
def _a_poll_ends_within_a_transaction(story):
    story.transaction("t1", ("a", 0), ("b", 1), commit="ok")
    story.poll((0, "a"))
    story.poll((1, "b"))


@planted("stuck-transaction")
def _nobody_ends_it(story):
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, 1.0]])
    story.wait(200)
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, 1.0]])


def _open_after_a_jump(story, **detail):
    story.note("nemesis", "fault", fault="clock_jump", target="broker", detail={"offset": -3600.0, **detail})
    story.wait(10)
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, None]])
    story.wait(200)
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, None]])


@planted("stuck-transaction")
def _nobody_ends_what_began_after_the_clock_was_set_back(story):
    _open_after_a_jump(story, stays=True)


@innocent
def _it_may_have_begun_before_the_clock_was_set_back_for_good(story):
    story.state(last_stable=0, high_watermark=0, open=[])
    story.wait(0.5)
    _open_after_a_jump(story, stays=True)


@innocent
def _it_may_have_begun_before_in_a_partition_that_nobody_had_looked_at(story):
    story.note("broker-1", "partition_state", node=1, topic="t", partition=1, last_stable=0, high_watermark=0, open=[])
    story.wait(0.5)
    _open_after_a_jump(story, stays=True)


@planted("stuck-transaction")
def _nobody_had_begun_it_when_the_clock_was_set_back_for_good(story):
    story.note("nemesis", "fault", fault="clock_jump", target="broker", detail={"offset": -3600.0, "stays": True})
    story.wait(1)
    story.state(last_stable=0, high_watermark=0, open=[])
    story.wait(1)
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, None]])
    story.wait(200)
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, None]])


@innocent
def _the_clock_is_set_right_again_meanwhile(story):
    _open_after_a_jump(story)


def _stuck(story, *, power_lost=""):
    story.transaction("t1", ("a", 0))
    if power_lost:
        story.note("world", "power_lost", node=1, fsync=power_lost)
    story.note("world", "quiet")
    story.wait(500)
    story.final((0, "a"), isolations=BOTH[:1])
    story.final(end=0, isolations=BOTH[1:])


@planted("stuck-transaction")
def _committed_records_end_before_the_others(story):
    _stuck(story)


@planted("stuck-transaction")
def _committed_records_end_before_the_others_after_a_loss_of_power(story):
    _stuck(story, power_lost="batch")


@planted("stuck-transaction")
def _committed_records_end_before_the_others_after_a_loss_of_power_that_took_the_marker(story):
    _stuck(story, power_lost="never")


def _stuck_soon_after_a_last_loss(story, fsync):
    story.transaction("t1", ("a", 0))
    story.note("world", "quiet")
    story.wait(500)
    story.note("world", "power_lost", node=1, fsync=fsync)
    story.wait(1)
    story.final((0, "a"), isolations=BOTH[:1])
    story.final(end=0, isolations=BOTH[1:])


@planted("stuck-transaction")
def _committed_records_end_before_the_others_soon_after_a_last_loss_of_power(story):
    _stuck_soon_after_a_last_loss(story, "batch")


@innocent
def _a_last_loss_of_power_took_the_end_of_a_transaction(story):
    _stuck_soon_after_a_last_loss(story, "never")


@innocent
def _a_transaction_is_open_for_its_time(story):
    story.call("p", "init_producer", kind="transactional", transaction_timeout=900.0)
    story.transaction("t1", ("a", 0))
    story.state(last_stable=0, high_watermark=1, open=[[7, 0, 0, 1.0]])
    story.wait(500)
    story.state(last_stable=0, high_watermark=1, open=[[7, 0, 0, 1.0]])
    story.note("world", "quiet")
    story.wait(500)
    story.final((0, "a"), isolations=BOTH[:1])
    story.final(end=0, isolations=BOTH[1:])


def _one_of_another_make_leaves_one_open(story, producer_id):
    story.note("foreign", "own", transactional_id="t", producer_id=producer_id, transaction_timeout=300.0)
    story.state(last_stable=0, high_watermark=1, open=[[7, 0, 0, 1.0]])
    story.wait(200)
    story.state(last_stable=0, high_watermark=1, open=[[7, 0, 0, 1.0]])


@innocent
def _one_of_another_make_leaves_a_transaction_open_for_its_time(story):
    _one_of_another_make_leaves_one_open(story, 7)


@planted("stuck-transaction")
def _one_is_open_longer_than_its_producer_asked_for_though_another_may_be(story):
    _one_of_another_make_leaves_one_open(story, 8)


@innocent
def _a_task_that_ran_twice_left_one_open_a_moment_ago(story):
    story.note("world", "quiet")
    story.wait(60)
    story.call("d", "sink_batch", "ok", sink="s", batch=1, topic="t", rows=["a"], transaction_timeout=30.0)
    story.wait(30)
    story.final((0, "a"), (2, "a"), isolations=BOTH[:1])
    story.final((0, "a"), end=2, isolations=BOTH[1:])


@planted("stuck-transaction")
def _a_sinks_task_that_ran_twice_left_one_open_for_ever(story):
    story.note("world", "quiet")
    story.call("d", "sink_batch", "ok", sink="s", batch=1, topic="t", rows=["a"], transaction_timeout=30.0)
    story.wait(60)
    story.final((0, "a"), (2, "a"), isolations=BOTH[:1])
    story.final((0, "a"), end=2, isolations=BOTH[1:])


@innocent
def _a_broker_that_was_away_ends_it_later(story):
    story.note("world", "broker_started", node=1, fsync="batch")
    story.wait(200)
    story.note("world", "broker_started", node=1, fsync="batch")
    story.state(last_stable=0, high_watermark=2, open=[[7, 0, 0, 1.0]])


@innocent
def _a_sinks_transaction_waits_for_its_next_driver(story):
    story.call("d", "sink_batch", "info", sink="s", batch=1, topic="t", rows=["r1"])
    story.note("world", "quiet")
    story.wait(200)
    story.final((0, "r1"), isolations=BOTH[:1])
    story.final(end=0, isolations=BOTH[1:])


@innocent
def _a_transaction_began_by_a_clock_that_was_ahead(story):
    story.call("p", "init_producer", kind="transactional", transaction_timeout=6.0)
    story.note("nemesis", "fault", fault="clock_jump", target="broker", seconds=1, detail={"offset": 120.0})
    story.transaction("t1", ("a", 0))
    story.note("world", "quiet")
    story.wait(100)
    story.final((0, "a"), isolations=BOTH[:1])
    story.final(end=0, isolations=BOTH[1:])


@planted("stable-passes-open")
def _stable_past_what_is_open(story):
    story.state(last_stable=2, high_watermark=3, open=[[7, 0, 1, 1.0]])


@planted("stable-stands-still")
def _stable_before_the_end_and_nothing_open(story):
    story.state(last_stable=2, high_watermark=3, open=[])
    story.wait(10)
    story.state(last_stable=2, high_watermark=3, open=[])


@innocent
def _a_sample_is_taken_while_a_marker_is_written(story):
    story.state(last_stable=2, high_watermark=3, log_end=3, open=[])
    story.wait(10)
    story.state(last_stable=4, high_watermark=4, log_end=4, open=[])


@innocent
def _stable_where_the_oldest_is_open_or_at_the_end(story):
    story.state(last_stable=1, high_watermark=3, open=[[7, 0, 1, 1.0], [8, 0, 2, 1.0]])
    story.state(last_stable=3, high_watermark=3, open=[])
    story.state(last_stable=3, high_watermark=5, log_end=6, open=[])
    story.state(last_stable=6, high_watermark=6, log_end=6, open=[])


@planted("G0")
def _transactions_of_one_id_interleave(story):
    first = story.begin("p", "send", topic="t", name="a", transaction="t1", kind="transactional")
    story.call("p", "begin", transaction="t1", transactional_id="id")
    story.transaction("t2", ("b", 1), commit="ok", process="q")
    story.send("c", 2, transaction="t1", kind="transactional", process="r")
    story.end(first, partition=0, offset=0)


@planted("G1c")
def _transactions_are_made_of_each_other(story):
    story.call("p", "send", "ok", {"partition": 0, "offset": 0}, topic="t", name="a", transaction="t1", source="b")
    story.call("q", "send", "ok", {"partition": 1, "offset": 0}, topic="t", name="b", transaction="t2", source="a")


@innocent
def _transactions_of_two_ids_interleave(story):
    for name, process in (("t1", "p"), ("t2", "q")):
        story.call(process, "begin", transaction=name, transactional_id=process)
    for offset, name in enumerate(("t1", "t2", "t1", "t2")):
        process = {"t1": "p", "t2": "q"}[name]
        story.send(f"r{offset}", offset, transaction=name, kind="transactional", process=process)


def _made_twice(story, *, power_lost=""):
    story.send("in", 0)
    for number in range(2):
        name = f"t{number}"
        story.call("p", "begin", transaction=name)
        story.send(f"out{number}", number, topic="u", transaction=name, source="in", kind="transactional")
        story.call("p", "send_offsets", transaction=name, group="g", offsets=[["t", 0, 1]])
        story.call("p", "commit_transaction", transaction=name)
        if power_lost and number == 0:
            story.note("world", "power_lost", node=1, fsync=power_lost)
    story.final((0, "out0"), (1, "out1"), topic="u")


@planted("made-twice")
def _a_source_is_made_into_two(story):
    _made_twice(story)


@planted("made-twice")
def _a_source_is_made_again_after_a_loss_of_power(story):
    _made_twice(story, power_lost="batch")


@innocent
def _a_source_is_made_again_after_a_loss_of_power_that_nothing_was_promised_for(story):
    _made_twice(story, power_lost="never")


@innocent
def _a_source_is_made_again_after_an_abort(story):
    story.send("in", 0)
    for number, end in enumerate(("abort_transaction", "commit_transaction")):
        name = f"t{number}"
        story.call("p", "begin", transaction=name)
        story.send(f"out{number}", number * 2, topic="u", transaction=name, source="in", kind="transactional")
        story.call("p", "send_offsets", transaction=name, group="g", offsets=[["t", 0, 1]])
        story.call("p", end, transaction=name)
    story.final((2, "out1"), topic="u", isolations=BOTH[1:], end=4)


def _owned(story, process="p", epoch=0):
    asked = {"kind": "transactional", "acks": -1, "transactional_id": "id", "transaction_timeout": 60.0}
    story.call(process, "init_producer", "ok", {"producer_id": 1, "epoch": epoch}, **asked)


def _refused(story, code="PRODUCER_FENCED", after=1):
    error = {"type": "tagwire.errors.KafkaError", "code": code, "message": "another one has it"}
    story.call("p", "begin", transaction="t1", transactional_id="id")
    story.wait(after)
    story.call("p", "commit_transaction", "info", {"error": error}, transaction="t1", transactional_id="id")


def _taken_over(story, epoch, fsync, *, at_once=False, lost_by="power_lost", topic="__transaction_state"):
    asked = {"kind": "transactional", "acks": -1, "transactional_id": "id", "transaction_timeout": 10.0}
    first = story.begin("p", "init_producer", **asked)
    second = story.begin("q", "init_producer", **asked) if at_once else None
    story.end(first, producer_id=7, epoch=4)
    if lost_by == "power_lost":
        story.note("world", "power_lost", node=1, fsync=fsync)
    else:
        story.note("world", "sync_refused", topic=topic, partition=0, fsync=fsync)
    second = story.begin("q", "init_producer", **asked) if second is None else second
    story.end(second, producer_id=7, epoch=epoch)


@planted("owner-forgotten")
def _who_takes_over_has_the_epoch_of_the_one_before(story):
    _taken_over(story, 4, "interval")


@innocent
def _who_takes_over_has_the_next_epoch(story):
    _taken_over(story, 5, "interval")


@innocent
def _who_had_it_before_is_forgotten_where_nothing_is_promised(story):
    _taken_over(story, 4, "never")


@innocent
def _who_had_it_before_is_forgotten_where_the_disk_did_not_take_it_and_nothing_is_promised(story):
    _taken_over(story, 4, "never", lost_by="sync_refused")


@planted("owner-forgotten")
def _what_another_log_lost_is_no_excuse(story):
    _taken_over(story, 4, "never", lost_by="sync_refused", topic="topic-1")


@innocent
def _who_asked_at_the_same_time_may_have_been_first(story):
    _taken_over(story, 3, "interval", at_once=True)


@planted("fenced-by-nobody")
def _who_is_alone_is_fenced(story):
    _owned(story)
    _refused(story)


@planted("fenced-by-nobody")
def _who_is_alone_and_fast_is_told_that_there_is_no_transaction_to_commit(story):
    _owned(story)
    _refused(story, "INVALID_TXN_STATE")


def _initializes_again(story, *, ended):
    _owned(story)
    story.call("p", "begin", transaction="t1", transactional_id="id")
    if ended:
        story.note("broker", "broker_killed", node="broker")
    text = "PRODUCER_FENCED (90): initialize, transactional id 'id'"
    error = {"type": "tagwire.errors.ProducerFencedError", "code": "PRODUCER_FENCED", "message": text}
    story.call("p", "abort_transaction", "info", {"error": error}, transaction="t1", transactional_id="id")


@planted("fenced-by-nobody")
def _who_initializes_again_is_fenced(story):
    _initializes_again(story, ended=False)


@innocent
def _who_initializes_again_at_a_coordinator_that_cannot_know_it_is_fenced(story):
    """It may be the same request once more, and which epoch was given up is not stored."""
    _initializes_again(story, ended=True)


@innocent
def who_is_alone_and_slow_is_told_that_there_is_no_transaction_to_commit(story):
    _owned(story)
    _refused(story, "INVALID_TXN_STATE", after=60)


@innocent
def who_was_followed_is_fenced(story):
    _owned(story)
    _owned(story, "q", 1)
    _refused(story)


@innocent
def who_is_alone_is_told_something_else(story):
    _owned(story)
    story.note("nemesis", "fault", fault="disk_error", target=None)
    _refused(story, "COORDINATOR_NOT_AVAILABLE")

"""Calls that hang, errors, leaks, and the exactly-once sink."""

from tests.simulation.stories.telling import BOTH, innocent, planted


@planted("unanswered")
def _a_call_never_ends(story):
    story.call("p", "commit_transaction", None, transaction="t1")
    story.wait(1000)
    story.note("world", "quiet")


@planted("unanswered")
def _a_call_ends_late(story):
    call = story.begin("p", "create_topic", topic="t")
    story.wait(1000)
    story.end(call, "info")


@innocent
def _a_call_of_who_was_killed_or_asleep_never_ends_or_late(story):
    story.call("p", "commit_transaction", None, transaction="t1")
    story.note("nemesis", "fault", fault="client_kill", target="p")
    call = story.begin("q#2", "create_topic", topic="t")
    story.note("nemesis", "fault", fault="client_paused", target="q", seconds=900)
    story.wait(1000)
    story.end(call, "info")


@innocent
def _a_call_of_a_later_life_or_a_thread_of_who_was_killed_never_ends(story):
    story.begin("p#2", "poll", group="g")
    story.begin("q#2/1", "send", topic="t", name="a", partition=0)
    story.wait(1)
    story.note("nemesis", "fault", fault="client_killed", target="p#2")
    story.note("nemesis", "fault", fault="client_killed", target="q#2")
    story.wait(1000)
    story.note("world", "quiet")


@planted("unanswered")
def _a_call_never_ends_and_the_next_life_of_its_process_is_killed(story):
    story.begin("p", "poll", group="g")
    story.wait(500)
    story.note("nemesis", "fault", fault="client_killed", target="p#2")
    story.wait(500)
    story.note("world", "quiet")


@planted("waits-for-another-broker")
def _a_send_waits_for_a_broker_that_is_not_its_leader(story):
    story.state(high_watermark=0)
    story.note("world", "broker_paused", node=2, seconds=100)
    call = story.begin("p", "send", topic="t", name="a", partition=0)
    story.wait(90)
    story.end(call, partition=0, offset=0)


@innocent
def _a_send_waits_for_its_own_leader(story):
    story.state(high_watermark=0)
    story.note("world", "broker_paused", node=1, seconds=100)
    call = story.begin("p", "send", topic="t", name="a", partition=0)
    story.wait(90)
    story.end(call, partition=0, offset=0)


@innocent
def _a_send_waits_for_the_process_that_its_leader_is_a_node_of(story):
    story.state(leader=2, high_watermark=0)
    story.note("world", "broker_killed", node=1)
    call = story.begin("p", "send", topic="t", name="a", partition=0)
    story.wait(90)
    story.end(call, partition=0, offset=0)


@innocent
def _a_send_takes_its_time_after_a_broker_was_away(story):
    story.state(high_watermark=0)
    story.note("world", "broker_killed", node=2)
    starting = story.begin("broker-2", "broker_started", node=2, fsync="batch")
    story.end(starting, took=1.0)
    story.wait(1)
    call = story.begin("p", "send", topic="t", name="a", partition=0)
    story.wait(90)
    story.end(call, partition=0, offset=0)


@planted("waits-for-another-broker")
def _a_send_waits_for_another_broker_long_after_its_leader_was_started_again(story):
    story.state(high_watermark=0)
    story.note("world", "broker_killed", node=1)
    starting = story.begin("broker-1", "broker_started", node=1, fsync="batch")
    story.end(starting, took=1.0)
    story.wait(1)
    story.note("world", "broker_paused", node=2, seconds=100)
    call = story.begin("p", "send", topic="t", name="a", partition=0)
    story.wait(90)
    story.end(call, partition=0, offset=0)


@planted("unavailable")
def _a_partition_cannot_be_read_in_the_end(story):
    story.note("world", "quiet")
    error = {"type": "tagwire.errors.KafkaError", "code": "KAFKA_STORAGE_ERROR", "message": "offline"}
    story.call("r", "final_read", "fail", {"error": error}, topic="t", partition=0, isolation="read_committed")


@innocent
def _a_partition_loses_its_oldest_records_while_it_is_read(story):
    story.create(retention_ms="1000")
    story.note("world", "quiet")
    error = {"type": "tagwire.errors.KafkaError", "code": "OFFSET_OUT_OF_RANGE", "message": "no offset 0"}
    story.call("r", "final_read", "fail", {"error": error}, topic="t", partition=0, isolation="read_committed")


@planted("unexpected-exception")
def _a_call_raises_what_is_no_error_of_ours(story):
    error = {"type": "builtins.KeyError", "code": None, "message": "3"}
    story.call("p", "begin", "info", {"error": error}, transaction="t1")


@planted("unexpected-exception")
def _a_consumer_breaks_down(story):
    message = "the consumer broke down: IndexError: pop from empty list"
    error = {"type": "tagwire.errors.TagwireError", "code": None, "message": message}
    story.call("c", "poll", "fail", {"error": error}, group="g")


@planted("unexpected-error")
def _a_broker_does_not_know_what_happened(story):
    error = {"type": "tagwire.errors.KafkaError", "code": "UNKNOWN_SERVER_ERROR", "message": "?"}
    story.call("p", "begin", "info", {"error": error}, transaction="t1")


@innocent
def _calls_raise_what_the_protocol_has_and_what_their_callers_do(story):
    for kind, code in (("tagwire.errors.KafkaError", "NOT_COORDINATOR"), ("builtins.TimeoutError", None)):
        error = {"type": kind, "code": code, "message": ""}
        story.call("p", "begin", "info", {"error": error}, transaction=f"t{code}")


@planted("unexpected-log")
def _a_task_ends_with_what_nobody_fetches(story):
    message = "Task exception was never retrieved"
    story.note("broker-1", "logged", node=1, logger="asyncio", level="ERROR", message=message)


@planted("unexpected-log")
def _a_broker_logs_an_exception(story):
    story.note("broker-1", "logged", node=1, logger="tagwire", level="ERROR", message="m", error="builtins.KeyError")


@innocent
def _a_broker_logs_what_its_disk_did(story):
    story.note("nemesis", "fault", fault="disk_full", target=1)
    story.note("broker-1", "logged", node=1, logger="tagwire", level="ERROR", message="m", error="builtins.OSError")
    story.note(
        "broker-1", "logged", node=1, logger="tagwire", level="WARNING", message="a connection broke", error=None
    )


for _what in ("tasks", "threads", "descriptors", "memory"):

    @planted(f"leaked-{_what}")
    def _leaked(story, what=_what):
        story.note("broker-1", "resources", node=1, phase="start", **{what: 10})
        story.note("broker-1", "resources", node=1, phase="end", **{what: 10 + (64 << 20)})


@planted("leaked-memory")
def _a_broker_holds_more_than_a_restart_finds(story):
    story.note("broker", "kept", node="broker", more={"Partition._watchers": [4, 0]})


def _has_of_transactions(story, *open_):
    story.state(high_watermark=4, open=[[1, 0, 2, 5.0]])
    story.state(high_watermark=4, open=list(open_))
    story.note("broker", "kept", node="broker", more={}, of_transactions={"Groups._in_transactions": 2})


@planted("leaked-memory")
def _a_broker_holds_what_transactions_have_left_that_are_over(story):
    _has_of_transactions(story)


@innocent
def _a_broker_holds_what_is_of_a_transaction_that_is_open(story):
    _has_of_transactions(story, [1, 0, 2, 5.0])


def _open_after(story, seconds, timeout, where="ProducerState._open"):
    story.call("d", "sink_batch", sink="s", batch=1, topic="u", rows=[], transaction_timeout=timeout)
    story.wait(seconds)
    story.note("broker", "kept", node="broker", more={where: [1, 0]})


@planted("leaked-memory")
def _a_transaction_is_open_when_its_time_is_over(story):
    _open_after(story, 200.0, 30.0)


@planted("leaked-memory")
def _room_is_taken_by_a_transaction_whose_time_is_over(story):
    _open_after(story, 200.0, 30.0, "TransactionStates.held_bytes")


@innocent
def _a_transaction_of_a_sink_has_time_left(story):
    _open_after(story, 110.0, 120.0)


@innocent
def _room_is_taken_by_a_transaction_that_has_time_left(story):
    _open_after(story, 110.0, 120.0, "TransactionStates.held_bytes")


@innocent
def _a_broker_holds_the_last_requests(story):
    more = {"RequestLog._latest": [100, 0], "RequestTotal.count": [900, 0], "FetchSession.partitions": [3, 0]}
    more |= {"ClusterImage.controller_id": [3, 1], "VisibleEnd.newest": [1_900_000_000_000, 0]}
    story.note("broker", "kept", node="broker", more=more | {"FetchSessions._partitions": [3, 0]})


@innocent
def _what_was_taken_is_given_back(story):
    for phase, tasks in (("start", 3), ("run", 90), ("end", 3)):
        story.note("broker-1", "resources", node=1, phase=phase, tasks=tasks, memory=10 << 20)


@planted("sink-row-lost")
def _a_row_of_a_batch_is_not_there(story):
    story.call("d", "sink_batch", sink="s", batch=1, topic="u", rows=["r1", "r2"])
    story.final((0, "r1"), topic="u")


@innocent
def a_row_stands_behind_what_a_late_attempt_has_open(story):
    story.call("d", "sink_batch", sink="s", batch=1, topic="u", rows=["r1", "r2"])
    story.final((0, "r1"), (1, "r2"), (2, "r2"), topic="u", isolations=("read_uncommitted",))
    story.final((0, "r1"), topic="u", end=1, isolations=("read_committed",))


@planted("sink-row-lost")
def _a_batch_is_decided_too_late(story):
    of = {"sink": "s", "query": "q", "batch": 1}
    story.call("d", "sink_decide", "info", **of, age=16.0)
    lost = {
        "error": {
            "type": "tagwire.spark.sink.driver.LostTransactionError",
            "message": "micro-batch 1 of query q was decided, but of its 1",
        }
    }
    story.wait(100)
    story.call("d", "sink_batch", "info", lost, **of, topic="u", rows=["r1"], transaction_timeout=30.0)


@innocent
def _a_driver_that_slept_when_it_had_decided_tells_what_is_lost(story):
    of = {"sink": "s", "query": "q", "batch": 1}
    lost = {
        "error": {
            "type": "tagwire.spark.sink.driver.LostTransactionError",
            "message": "micro-batch 1 of query q was decided, but of its 1",
        }
    }
    call = story.begin("d", "sink_batch", **of, topic="u", rows=["r1"], transaction_timeout=30.0)
    story.call("d", "sink_decide", "info", **of, age=1.0)
    story.wait(100)
    story.end(call, "info", **lost)


@planted("sink-stalled")
def _each_micro_batch_fails(story):
    story.note("world", "quiet")
    for _ in range(4):
        story.call("d", "sink_batch", "info", sink="s", query="q", batch=1, topic="u", rows=["r1"])


@planted("sink-row-twice")
def _a_row_of_a_batch_is_there_twice(story):
    story.call("d", "sink_batch", "info", sink="s", batch=1, topic="u", rows=["r1"])
    story.call("e", "sink_batch", sink="s", batch=1, topic="u", rows=["r1"])
    story.final((0, "r1"), (2, "r1"), topic="u")


@innocent
def _rows_of_an_attempt_that_failed_are_there_for_readers_of_uncommitted_records(story):
    story.call("d", "sink_batch", "info", sink="s", batch=1, topic="u", rows=["r1"])
    story.call("e", "sink_batch", sink="s", batch=1, topic="u", rows=["r1"])
    story.call("e", "sink_batch", "info", sink="s", batch=2, topic="u", rows=["r2"])
    story.final((0, "r1"), (2, "r1"), topic="u", isolations=BOTH[:1], end=4)
    story.final((2, "r1"), topic="u", isolations=BOTH[1:], end=4)


def _failed(story, code="INVALID_TXN_STATE", kind="KafkaError", took=0.05, fault=False, **client):
    made = story.begin("admin", "create_topic", topic="t", partitions=1, configs={})
    story.clock += took - 1
    story.end(made)
    if fault:
        story.note("nemesis", "fault", fault="cut", target="p")
    error = {"type": f"tagwire.errors.{kind}", "code": code, "message": str(code)}
    story.call("p", "send", "info", {"error": error}, topic="t", name="a", kind="idempotent", acks="all", **client)


@planted("failed-for-nothing")
def _a_record_is_refused_and_nothing_was_wrong(story):
    _failed(story)


@planted("failed-for-nothing")
def _a_record_is_refused_before_a_topic_is_deleted(story):
    _failed(story)
    story.call("admin", "delete_topic", topic="u")


@innocent
def _a_record_is_refused_after_a_topic_was_deleted(story):
    story.call("admin", "delete_topic", topic="t")
    _failed(story)


@planted("failed-for-nothing")
def _nobody_answers_and_nothing_was_wrong(story):
    _failed(story, None, "RequestTimeoutError")


@innocent
def nobody_answers_who_is_to_wait(story):
    _failed(story, None, "RequestTimeoutError", client_id="p")
    _failed(story, "OUT_OF_ORDER_SEQUENCE_NUMBER", client_id="p")


@innocent
def nobody_answers_who_is_far_away(story):
    _failed(story, None, "RequestTimeoutError", took=0.8)


@innocent
def a_record_is_refused_by_a_limit(story):
    _failed(story, "MESSAGE_TOO_LARGE")


@innocent
def a_record_is_refused_a_while_after_a_fault(story):
    _failed(story, fault=True)


@innocent
def an_answer_about_offsets_waits_behind_that_to_a_join(story):
    story.call("c", "subscribe", group="g", topics=["t"], reset="earliest")
    error = {"type": "tagwire.errors.RequestTimeoutError", "code": None, "message": "no answer"}
    story.call("c", "committed", "fail", {"error": error}, group="g", partitions=[["t", 0]])


def _waits(story, f, rebalanced):
    """A call of a member about offsets that has no answer in time, or an automatic commit, long after it has joined."""
    made = story.begin("admin", "create_topic", topic="t", partitions=1, configs={})
    story.clock += 0.05 - 1
    story.end(made)
    story.call("c", "subscribe", group="g", topics=["t"], reset="earliest", auto_commit=True)
    story.wait(30)
    if rebalanced:
        story.assign("c", 1)
    if f is None:
        message = "offsets were not committed automatically: one before it has no response yet"
        story.note("c", "logged", logger="tagwire.client", level="WARNING", message=message)
        return
    error = {"type": "tagwire.errors.RequestTimeoutError", "code": None, "message": "no answer"}
    story.call("c", f, "fail", {"error": error}, group="g", partitions=[["t", 0]])


@planted("failed-for-nothing")
def _an_answer_about_offsets_does_not_come_and_nobody_joins(story):
    _waits(story, "committed", rebalanced=False)


@innocent
def _an_answer_about_offsets_waits_behind_that_to_a_join_long_after_the_first(story):
    _waits(story, "committed", rebalanced=True)


@planted("not-committed")
def _an_automatic_commit_fails_and_nothing_was_wrong(story):
    _waits(story, None, rebalanced=False)


@innocent
def _an_automatic_commit_fails_while_its_group_rebalances(story):
    _waits(story, None, rebalanced=True)

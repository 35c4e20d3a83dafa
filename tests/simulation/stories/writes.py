"""Records that were written."""

from tests.simulation.stories.audits import batch, log
from tests.simulation.stories.telling import BOTH, innocent, planted


@planted("lost-write")
def _lost_at_a_kill(story):
    story.send("a", 0)
    story.send("b", 1)
    story.note("world", "broker_killed", node=1)
    story.final((0, "a"), end=2)


@planted("lost-write")
def _lost_with_the_power_though_it_was_synced(story):
    story.send("a", 0)
    story.note("world", "power_lost", node=1, fsync="batch")
    story.final()


@planted("lost-write")
def _lost_for_readers_of_committed_records_alone(story):
    story.transaction("t1", ("a", 0), commit="ok")
    story.final((0, "a"), isolations=BOTH[:1], end=2)
    story.final(isolations=BOTH[1:], end=2)


@planted("lost-write")
def _lost_long_after_the_second_that_interval_takes(story):
    story.send("a", 0)
    story.wait(60)
    story.note("world", "power_lost", node=1, fsync="interval")
    story.final()


@innocent
def _a_second_of_interval_is_lost_with_the_power(story):
    story.send("a", 0)
    story.note("world", "power_lost", node=1, fsync="interval")
    story.final()


@planted("lost-write")
def _a_committed_transaction_is_lost_within_the_second_of_interval(story):
    story.transaction("t1", ("a", 0), commit="ok")
    story.note("world", "power_lost", node=1, fsync="interval")
    story.final()


@innocent
def _a_transaction_that_is_not_committed_is_lost_within_the_second_of_interval(story):
    story.transaction("t1", ("a", 0))
    story.note("world", "power_lost", node=1, fsync="interval")
    story.call("p", "commit_transaction", transaction="t1", transactional_id="id")
    story.final()


@innocent
def _all_of_never_may_be_lost_with_the_power(story):
    story.send("a", 0)
    story.wait(600)
    story.note("world", "power_lost", node=1, fsync="never")
    story.send("b", 0)
    story.final((0, "b"))


def _refused_sync(story, *, fsync="interval", partition=0, wait=0.0):
    story.send("a", 0)
    story.wait(wait)
    story.note("world", "sync_refused", node=1, fsync=fsync, topic="t", partition=partition)


@innocent
def _a_second_of_interval_is_lost_with_a_sync_that_the_disk_refused(story):
    _refused_sync(story)
    story.final()


@planted("lost-write")
def _lost_with_a_sync_that_the_disk_refused_before_anybody_was_answered(story):
    _refused_sync(story, fsync="batch")
    story.final()


@planted("lost-write")
def _lost_with_a_sync_of_another_partition_that_the_disk_refused(story):
    _refused_sync(story, partition=1)
    story.final()


@planted("lost-write")
def _lost_with_a_sync_that_the_disk_refused_long_after_it(story):
    _refused_sync(story, wait=60)
    story.final()


@planted("lost-write")
def _written_after_the_disk_refused_a_sync_and_lost(story):
    _refused_sync(story)
    story.send("b", 0)
    story.final()


@innocent
def _an_offset_is_given_again_where_the_disk_refused_a_sync(story):
    _refused_sync(story)
    story.send("b", 0)
    story.final((0, "b"))


def _given_after_the_loss(story, *, wait=0.0):
    _refused_sync(story, wait=wait)
    story.poll((0, "a"))
    story.send("b", 0)
    story.final((0, "b"))


@innocent
def _a_poll_gives_what_was_fetched_before_a_sync_was_refused_that_took_it_along(story):
    _given_after_the_loss(story)


@planted("inconsistent-offsets")
def _a_poll_gives_what_had_long_been_on_the_disk_when_a_sync_was_refused_and_another_has_its_offset(story):
    _given_after_the_loss(story, wait=60)


@innocent
def _acks_0_and_what_nobody_acknowledged_may_be_lost(story):
    story.send("a", -1, acks="0", kind="plain")
    story.send("b", end="info")
    story.send("c", end=None)
    story.final()


@innocent
def _what_nobody_acknowledged_may_appear(story):
    story.send("a", end="info")
    story.final((0, "a"))


@innocent
def _what_was_deleted_by_request_is_gone(story):
    story.send("a", 0)
    story.call("admin", "delete_records", "info", topic="t", partition=0, before=1)
    story.final(start=1)


@innocent
def _records_of_an_aborted_transaction_are_there_for_readers_of_uncommitted_ones(story):
    story.transaction("t1", ("a", 0), abort="ok")
    story.final((0, "a"), isolations=BOTH[:1], end=2)
    story.final(isolations=BOTH[1:], end=2)


@planted("unseen")
def _acknowledged_and_never_read(story):
    story.send("a", 0)
    story.note("world", "quiet")


@innocent
def _acknowledged_and_polled(story):
    story.send("a", 0)
    story.note("world", "quiet")
    story.poll((0, "a"))


@planted("nonmonotonic-send")
def _a_plain_producer_has_one_batch_in_flight(story):
    first = story.begin("p", "send", topic="t", partition=0, name="a", kind="plain", acks="1")
    second = story.begin("p", "send", topic="t", partition=0, name="b", kind="plain", acks="1")
    story.end(second, partition=0, offset=0)
    story.end(first, partition=0, offset=1)


@planted("duplicate")
def _an_idempotent_record_stands_twice(story):
    story.send("a", 0)
    story.final((0, "a"), (1, "a"))


@planted("duplicate")
def _a_record_stands_in_two_partitions(story):
    story.send("a", 0)
    story.final((0, "a"))
    story.final((0, "a"), partition=1)


@innocent
def _a_plain_record_stands_twice(story):
    story.send("a", 0, kind="plain", acks="1")
    story.final((0, "a"), (1, "a"))


@planted("inconsistent-offsets")
def _an_offset_is_two_records(story):
    story.send("a", end="info")
    story.send("b", end="info")
    story.poll((3, "a"))
    story.poll((3, "b"), process="d")


@planted("inconsistent-offsets")
def _a_record_is_not_where_it_was_acknowledged(story):
    story.send("a", 0)
    story.send("b", end="info")
    story.poll((0, "b"))


@innocent
def _an_offset_is_written_anew_after_what_never_promises(story):
    story.send("a", end="info")
    story.send("b", end="info")
    story.poll((0, "a"))
    story.note("world", "power_lost", node=1, fsync="never")
    story.poll((0, "b"), process="d")


def _written_anew(story, epoch, *, is_polled=True):
    story.send("a", end="info")
    story.send("b", end="info")
    story.poll((0, "a"), epoch=3)
    story.note("world", "power_lost", node=1, fsync="never")
    if is_polled:
        story.poll((0, "b"), process="d", epoch=epoch)
    else:
        story.final((0, "b"))
        log(story, batch(0, leader=epoch))


@planted("inconsistent-offsets")
def _what_a_power_failure_took_is_written_anew_in_its_leader_epoch(story):
    _written_anew(story, 3)


@planted("inconsistent-offsets")
def _it_is_found_to_be_of_that_epoch_in_the_end(story):
    _written_anew(story, 3, is_polled=False)


@innocent
def _what_a_power_failure_took_is_written_anew_in_the_next_epoch(story):
    _written_anew(story, 4)


@innocent
def _it_is_found_to_be_of_the_next_epoch_in_the_end(story):
    _written_anew(story, 4, is_polled=False)


@planted("nonmonotonic-send")
def _a_later_record_of_a_producer_stands_before(story):
    story.send("a", 1)
    story.send("b", 0, process="p")


@planted("nonmonotonic-send")
def _what_was_sent_in_flight_overtakes(story):
    first = story.begin("p", "send", topic="t", name="a", kind="idempotent")
    second = story.begin("p", "send", topic="t", name="b", kind="idempotent")
    story.end(second, partition=0, offset=0)
    story.end(first, partition=0, offset=1)


@planted("nonmonotonic-send")
def _what_was_sent_after_anothers_acknowledgement_stands_before(story):
    story.send("a", 1, kind="plain")
    story.send("b", 0, process="q", kind="plain")


@planted("int-nonmonotonic-send")
def _a_transaction_is_out_of_order(story):
    story.transaction("t1", ("a", 1), ("b", 0), commit="ok")


@innocent
def _what_was_sent_meanwhile_stands_in_any_order(story):
    first = story.begin("p", "send", topic="t", name="a", kind="idempotent")
    story.send("b", 0, process="q")
    story.end(first, partition=0, offset=1)


@innocent
def _what_a_plain_producer_gave_up_stands_anywhere(story):
    first = story.begin("p", "send", topic="t", name="a", kind="plain")
    story.send("b", 0, kind="plain")
    story.end(first, "info")
    story.final((0, "b"), (1, "a"))


@planted("never-sent")
def _nobody_sent_it(story):
    story.poll((0, "x"))


@planted("never-sent")
def _it_was_sent_to_another_topic(story):
    story.send("a", 0)
    story.poll((0, "a"), topic="u")


@planted("failed-write")
def _it_had_failed(story):
    story.send("a", end="fail")
    story.poll((0, "a"))


@innocent
def _what_failed_is_nowhere(story):
    story.send("a", end="fail")
    story.send("b", 0)
    story.final((0, "b"))

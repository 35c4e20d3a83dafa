"""What one reader is given."""

from tests.simulation.stories.telling import BOTH, innocent, planted


@planted("poll-skip")
def _a_poll_leaves_out(story):
    for offset, name in enumerate("abc"):
        story.send(name, offset)
    story.poll((0, "a"))
    story.poll((2, "c"))
    story.final((0, "a"), (1, "b"), (2, "c"))


@planted("int-poll-skip")
def _one_poll_leaves_out(story):
    for offset, name in enumerate("abc"):
        story.send(name, offset)
    story.poll((0, "a"), (2, "c"))
    story.final((0, "a"), (1, "b"), (2, "c"))


@innocent
def _a_poll_goes_past_markers_aborted_and_sought_records(story):
    story.send("a", 0)
    story.transaction("t1", ("b", 1), abort="ok")
    story.send("c", 3)
    story.send("d", 4)
    story.poll((0, "a"))
    story.poll((3, "c"))
    story.call("c", "seek", topic="t", partition=0, offset=5)
    story.send("e", 5)
    story.poll((5, "e"))
    story.final((0, "a"), (1, "b"), (3, "c"), (4, "d"), (5, "e"), isolations=BOTH[:1])
    story.final((0, "a"), (3, "c"), (4, "d"), (5, "e"), isolations=BOTH[1:])


@planted("nonmonotonic-poll")
def _a_poll_gives_again(story):
    story.send("a", 0)
    story.poll((0, "a"))
    story.poll((0, "a"))


@planted("int-nonmonotonic-poll")
def _one_poll_goes_back(story):
    story.send("a", 0)
    story.send("b", 1)
    story.poll((1, "b"), (0, "a"))


@planted("int-nonmonotonic-poll")
def _one_poll_goes_back_in_a_topic_that_was_made_anew_before(story):
    story.create()
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.send("a", 0)
    story.send("b", 1)
    story.poll((1, "b"), (0, "a"))


@planted("int-nonmonotonic-poll")
def _one_poll_goes_back_in_a_topic_that_is_made_anew_after_both(story):
    story.create()
    story.send("a", 0)
    story.send("b", 1)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.poll((1, "b"), (0, "a"))


@innocent
def _one_poll_gives_the_end_of_a_topic_and_the_beginning_of_the_next_of_its_name(story):
    story.create()
    story.send("a", 0)
    story.send("b", 1)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.send("c", 0)
    story.poll((0, "a"), (1, "b"), (0, "c"))


def _what_was_fetched_before_a_sync_was_refused(story, partition):
    story.send("a", 0)
    story.send("b", 1)
    story.note("world", "sync_refused", node=1, fsync="interval", topic="t", partition=partition)
    story.send("c", 0)
    story.poll((0, "a"), (1, "b"), (0, "c"))


@innocent
def _one_poll_gives_what_was_fetched_before_its_log_was_cut_off_by_a_refused_sync(story):
    _what_was_fetched_before_a_sync_was_refused(story, partition=0)


@planted("int-nonmonotonic-poll")
def _one_poll_goes_back_where_the_sync_of_another_partition_was_refused(story):
    _what_was_fetched_before_a_sync_was_refused(story, partition=1)


@planted("nonmonotonic-poll")
def _a_member_that_keeps_a_partition_goes_back_in_it_after_a_rebalance(story):
    story.send("a", 0)
    story.assign("c", 1)
    story.poll((0, "a"), group="g")
    story.assign("c", 2)
    story.poll((0, "a"), group="g")


@innocent
def _a_member_that_has_left_is_given_a_partition_anew(story):
    story.send("a", 0)
    story.assign("c", 1)
    story.poll((0, "a"), group="g")
    story.call("c", "close", group="g")
    story.assign("c", 2)
    story.poll((0, "a"), group="g")


@innocent
def _what_was_not_committed_is_given_to_the_next_owner_again(story):
    story.send("a", 0)
    story.assign("c")
    story.poll((0, "a"), group="g")
    story.assign("c", f="revoke")
    story.assign("c")
    story.poll((0, "a"), group="g")


@planted("paused-read")
def _given_what_is_paused(story):
    story.send("a", 0)
    story.note("c", "pause", group="g", partitions=[["t", 0]])
    story.poll((0, "a"), group="g")


@innocent
def _given_what_was_resumed(story):
    story.send("a", 0)
    story.note("c", "pause", group="g", partitions=[["t", 0]])
    story.note("c", "resume", group="g", partitions=[["t", 0]])
    story.poll((0, "a"), group="g")


@innocent
def _given_what_came_back_after_it_was_paused(story):
    story.send("a", 0)
    story.assign("c", 1)
    story.note("c", "pause", group="g", partitions=[["t", 0]])
    story.assign("c", 1, f="revoke")
    story.assign("c", 2)
    story.poll((0, "a"), group="g")

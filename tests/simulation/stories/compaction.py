"""Compacted topics."""

from tests.simulation.stories.telling import BOTH, innocent, planted


@planted("compaction-lost-last-value")
def _a_last_value_is_gone(story):
    story.create(cleanup_policy="compact")
    story.send("a", 0, key="k")
    story.send("b", 1, key="l")
    story.final((1, "b"))


@planted("compaction-lost-last-value")
def _an_aborted_value_has_removed_the_last_one(story):
    story.create(cleanup_policy="compact")
    story.send("a", 0, key="k")
    story.transaction("t1", ("b", 1), abort="ok", key="k")
    story.final((1, "b"), isolations=BOTH[:1], end=3)
    story.final(isolations=BOTH[1:], end=3)


@planted("compaction-brought-back")
def _a_deleted_key_is_there_again(story):
    story.create(cleanup_policy="compact")
    story.send("a", 0, key="k")
    story.send("b", 1, key="k", tombstone=True)
    story.send("c", 2, key="l")
    story.final((0, "a"), (2, "c"))


@planted("tombstone-removed-early")
def _a_tombstone_goes_at_once(story):
    story.create(cleanup_policy="compact", delete_retention_ms="3600000")
    story.send("a", 0, key="k")
    story.send("b", 1, key="k", tombstone=True)
    story.send("c", 2, key="l")
    story.final((2, "c"))


@innocent
def _the_last_value_of_each_key_stays(story):
    story.create(cleanup_policy="compact")
    story.send("a", 0, key="k")
    story.send("b", 1, key="k")
    story.send("c", 2, key="l")
    story.final((1, "b"), (2, "c"))


@innocent
def _a_key_and_its_tombstone_go(story):
    story.create(cleanup_policy="compact", delete_retention_ms="1000")
    story.send("a", 0, key="k")
    story.send("b", 1, key="k", tombstone=True)
    story.send("c", 2, key="l")
    story.send("d", 3, key="m")
    story.send("e", end="info", key="m", tombstone=True)
    story.send("f", 5, key="n")
    story.send("g", -1, key="n", tombstone=True, acks="0", kind="plain")
    story.wait(10)
    story.final((2, "c"))


@planted("brought-back")
def _what_a_whole_read_lacked_is_there(story):
    story.create(cleanup_policy="compact")
    story.send("a", 0, key="k")
    story.send("b", 1, key="k")
    story.final((1, "b"))
    story.final((0, "a"), (1, "b"))


@innocent
def _a_later_read_has_what_was_written_since(story):
    story.send("a", 0)
    story.final((0, "a"))
    story.send("b", 1)
    story.final((0, "a"), (1, "b"))

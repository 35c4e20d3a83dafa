"""Histories of drivers of the exactly-once sink, who decide in time or do not."""

from __future__ import annotations

from tests.simulation.stories.telling import Story, innocent, planted

OF = {"sink": "s", "query": "q", "batch": 1}
LOST = "tagwire.spark.sink.driver.LostTransactionError"


def _decided(story: Story, how: str, age: float) -> None:
    batch = story.begin("d", "sink_batch", **OF, topic="u", rows=["r1"], transaction_timeout=30.0)
    story.call("d", "sink_decide", how, **OF, age=age)
    story.end(batch, how)
    story.final((0, "r1"), topic="u")


@planted("decided-late")
def _a_batch_is_committed_in_the_last_half_of_its_time(story: Story) -> None:
    _decided(story, "ok", 15.1)


@innocent
def _a_batch_is_committed_in_the_first_half_of_its_time(story: Story) -> None:
    _decided(story, "ok", 14.9)


@innocent
def _a_batch_that_comes_late_is_not_committed(story: Story) -> None:
    _decided(story, "info", 15.1)


def _committed(story: Story, age: float) -> None:
    batch = story.begin("d", "sink_batch", **OF, topic="u", rows=["r1"], transaction_timeout=30.0)
    decision = story.begin("d", "sink_decide", **OF, age=1.0)
    story.wait(age)
    story.note("d", "sink_decided", **OF, age=age)
    story.end(decision)
    story.end(batch)
    story.final((0, "r1"), topic="u")


@planted("decided-late")
def _a_driver_sleeps_and_commits_when_its_transactions_are_over_their_time(story: Story) -> None:
    _committed(story, 31.0)


@innocent
def _a_driver_sleeps_and_commits_in_time(story: Story) -> None:
    _committed(story, 22.0)


@innocent
def _a_driver_commits_late_amid_faults(story: Story) -> None:
    story.note("nemesis", "fault", fault="disk_slow", target="broker")
    _committed(story, 31.0)


def _told_to_be_lost(story: Story, *faults: str) -> None:
    lost = {"error": {"type": LOST, "message": "micro-batch 1 of query q was decided, but of its 1"}}
    for fault in faults:
        story.note("nemesis", "fault", fault=fault, target="broker")
    batch = story.begin("d", "sink_batch", **OF, topic="u", rows=["r1"], transaction_timeout=30.0)
    story.call("d", "sink_decide", "info", **OF, age=1.0)
    story.end(batch, "info", **lost)


@planted("sink-row-lost")
def _what_is_lost_in_time_is_told_before_a_clock_jumps(story: Story) -> None:
    _told_to_be_lost(story)
    story.note("nemesis", "fault", fault="clock", target="broker")


@innocent
def _what_is_lost_when_a_clock_has_jumped_may_be_over_its_time(story: Story) -> None:
    _told_to_be_lost(story, "clock")


def _left(story: Story, message: str) -> None:
    batch = story.begin("d", "sink_batch", **OF, topic="u", rows=["r1"], transaction_timeout=30.0)
    story.call("d", "sink_decide", "info", **OF, age=1.0)
    story.end(batch, "info")
    error = {"type": LOST, "message": message}
    story.note("d", "sink_told", sink="s", query="q", transaction_timeout=30.0, error=error)


@planted("sink-row-lost")
def _a_driver_for_which_nobody_waits_tells_of_what_is_lost(story: Story) -> None:
    _left(story, "micro-batch 1 of query q was decided, but of its 1")


@innocent
def _a_driver_for_which_nobody_waits_tells_that_it_is_overtaken(story: Story) -> None:
    _left(story, "micro-batch 1 of query q is decided; another driver")


def _fails(story: Story, *, is_disturbed: bool, **told: object) -> None:
    story.note("workload", "quiet")
    for _ in range(4):
        batch = story.begin("d", "sink_batch", **OF, topic="u", rows=["r1"], is_disturbed=is_disturbed)
        story.end(batch, "info", **told)


@planted("sink-stalled")
def _each_micro_batch_fails_that_nothing_disturbs(story: Story) -> None:
    _fails(story, is_disturbed=False)


@innocent
def _each_micro_batch_fails_whose_driver_is_stopped(story: Story) -> None:
    _fails(story, is_disturbed=True)


@innocent
def _each_micro_batch_is_refused_by_a_broker_that_went_back_to_an_older_release(story: Story) -> None:
    _fails(story, is_disturbed=False, error={"type": "tagwire.errors.UnsupportedVersionError", "message": "not served"})

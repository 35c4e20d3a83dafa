"""Histories of drivers of the exactly-once sink, who decide in time or do not."""

from __future__ import annotations

from tests.simulation.stories.telling import Story, innocent, planted

OF = {"sink": "s", "query": "q", "batch": 1}


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

"""Micro-batches that are planned without Spark, as for a session of Spark Connect: what their planner notices."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tagwire.errors import Error, KafkaError
from tagwire.partitions import LATEST, TopicPartition
from tagwire.spark.jobs.land_connect import ConnectRun
from tagwire.spark.jobs.landed import Batch, Follow, LandListener, Progress
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.tables.identity import Identity
from tagwire.spark.tables.table_settings import BatchSettings

AT = TopicPartition("t", 0)


class Topic:
    """A topic whose end is at each of `ends`, one after the other; with the last of them the run is to stop."""

    def __init__(self, *ends: int, skip: bool = False) -> None:
        self.skip = skip
        self.stop = threading.Event()
        self._ends = list(ends)

    def partitions(self) -> list[int]:
        return [0]

    def offsets(self, which: int) -> Offsets:
        if which != LATEST:
            return {AT: 0}
        end = self._ends.pop(0)
        if not self._ends:
            self.stop.set()
        return {AT: end}


class Run(ConnectRun):
    """Lands nothing, and notes what it would."""

    def __init__(self, marked: int) -> None:
        identity = Identity("id", "t", "", (), False)
        listener = LandListener()
        super().__init__(None, identity, BatchSettings(), listener, None, Progress(), None, {})  # type: ignore[arg-type]
        self.landed: list[tuple[int, int]] = []
        self._marked = marked

    def _options(self, *given: Any) -> dict[str, str]:
        return {"subscribe": "t"}

    def _begin(self, *given: Any) -> dict[int, int]:
        return {0: self._marked}

    def _land(self, records: Any, number: int, start: Mapping[Any, int], end: Mapping[Any, int]) -> None:
        self.landed.append((start[AT], end[AT]))
        self.published[number] = Batch(number)


class Session:
    """What of a session is asked for."""

    def __init__(self) -> None:
        self.conf = {"spark.sql.shuffle.partitions": "1"}

    @property
    def read(self) -> Session:
        return self

    def format(self, name: str) -> Session:
        return self

    def options(self, **given: str) -> Session:
        return self

    def option(self, name: str, value: str) -> Session:
        return self


def landed(topic: Topic, marked: int, *, follow: bool) -> list[tuple[int, int]]:
    run = Run(marked)
    run.run(Session(), {}, topic, Follow(stop=topic.stop, seconds=0.01) if follow else None)  # type: ignore[arg-type]
    return run.landed


@pytest.mark.parametrize("follow", [False, True])
def test_a_partition_that_ends_before_what_was_landed_is_an_error_as_in_a_stream(follow: bool) -> None:
    with pytest.raises(KafkaError, match=r"t-0 now ends at 80, 100 was reached \(failOnDataLoss=false") as caught:
        landed(Topic(80), 100, follow=follow)
    assert caught.value.error is Error.OFFSET_OUT_OF_RANGE


def test_what_comes_after_such_an_end_is_landed_where_loss_is_none() -> None:
    assert landed(Topic(100, 80, 120, 120, skip=True), 90, follow=True) == [(90, 100), (80, 120)]


class GrowingTopic(Topic):
    """A second partition comes after the first look, and has lost its first seven records by then."""

    looks = 0

    def offsets(self, which: int) -> Offsets:
        found = super().offsets(which)
        self.looks += which == LATEST
        return found if self.looks < 2 else {**found, TopicPartition("t", 1): 7}


def test_what_a_new_partition_has_lost_is_an_error_as_in_a_stream() -> None:
    with pytest.raises(KafkaError, match=r"t-1 is new and already begins at 7 \(failOnDataLoss=false"):
        landed(GrowingTopic(100, 100), 90, follow=True)
    assert landed(GrowingTopic(100, 120, 120, skip=True), 90, follow=True) == [(90, 100), (100, 120)]


def test_a_partition_that_grows_is_landed_as_it_does() -> None:
    assert landed(Topic(100, 100, 120, 120), 90, follow=True) == [(90, 100), (100, 120)]


def test_micro_batches_begin_no_more_often_than_asked_however_fast_records_come() -> None:
    topic, pause = Topic(*range(91, 96)), 0.2
    run = Run(90)
    begun = time.monotonic()
    run.run(Session(), {}, topic, Follow(stop=topic.stop, seconds=pause))  # type: ignore[arg-type]
    assert [end for _, end in run.landed] == [91, 92, 93, 94, 95]
    assert time.monotonic() - begun >= 4 * pause

"""Work that grows as what it is about does, and not as its square: counted in comparisons of names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic
from tagwire.client.admin import groups as admin_groups
from tagwire.client.consuming.topic_names import TopicNames

FEW, MANY = 40, 160
LINEAR = 1.5 * MANY / FEW


class Counted(str):
    """A name whose comparisons are counted, those of all of them together."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def comparisons(work: Callable[[], object]) -> int:
    Counted.compared = 0
    work()
    return Counted.compared


def test_topics_are_created_with_as_much_work_for_each_however_many_there_are() -> None:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:

        def create(count: int) -> int:
            new = [NewTopic(Counted(f"topic-{count}-{number}")) for number in range(count)]
            return comparisons(lambda: admin.create_topics(new, validate_only=True))

        few, many = create(FEW), create(MANY)
    assert few > 0
    assert many <= LINEAR * few


def test_groups_are_described_for_their_lag_with_as_much_work_for_each_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listing = admin_groups.GroupListing
    monkeypatch.setattr(admin_groups, "GroupListing", lambda group, *more: listing(Counted(group), *more))
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics("t")

        def told(count: int) -> int:
            for number in range(count):
                admin.alter_group_offsets(f"group-{number}", {("t", 0): 0})
            return comparisons(lambda: admin.group_lags(members=True))

        few, many = told(FEW), told(MANY)
        assert len(admin.group_lags(members=True)) == MANY
    assert few > 0
    assert many <= LINEAR * few


def test_names_of_topics_are_taken_with_as_much_work_for_each_however_many_there_are() -> None:

    def resolve(count: int) -> int:
        ids = [UUID(int=number + 1) for number in range(count)]
        told = [SimpleNamespace(topic_id=at, error_code=0, name=Counted(f"topic-{at.int}")) for at in ids]

        async def request_any(message: Any, deadline: float) -> tuple[None, Any]:
            return None, SimpleNamespace(topics=told)

        names = TopicNames(SimpleNamespace(request_any=request_any))  # type: ignore[arg-type]
        counted = comparisons(lambda: asyncio.run(names.resolve(ids, 0.0)))
        assert len(names.known) == count
        return counted

    assert resolve(MANY) <= LINEAR * max(resolve(FEW), FEW)

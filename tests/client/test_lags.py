"""How far groups are behind: how many requests it takes, and what is said of what cannot be told."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.registry import MOST_BYTES
from tagwire.client import Admin, Client
from tagwire.errors import Error, KafkaError, RemoteProtocolError

from .fake_broker import Close, FakeCluster, Silence

GROUPS = {9: (1, 9), 10: (0, 6), 15: (0, 6), 16: (0, 5), 42: (0, 2), 90: (0, 1)}
MANY = 600


class Coordinators:
    """Two brokers that share groups by their names' last letter: even digits are the first one's."""

    def __init__(self) -> None:
        self.committed: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        self.errors: dict[str, list[int]] = {}
        self.types: dict[str, str] = {}
        self.share_lag = -1

    def home(self, group: str) -> int:
        return int(group[-1]) % 2

    def serve(self, cluster: FakeCluster) -> None:
        for broker in cluster.brokers:
            assert broker.node in (0, 1)
        names = ("FindCoordinator", "OffsetFetch", "DescribeGroups", "DeleteGroups", "DescribeShareGroupOffsets")
        cluster.serve(GROUPS, {name: getattr(self, name) for name in names})
        cluster._ListGroups = self.ListGroups  # type: ignore[attr-defined]  # it tells each broker's own

    def ListGroups(self, message: Any, node: int) -> Any:  # noqa: N802
        kind = messages.ListGroupsResponse
        own = [name for name in self.committed if self.home(name) == node]
        return kind(
            groups=[
                kind.ListedGroup(group_id=name, group_state="Empty", group_type=self.types.get(name, "classic"))
                for name in own
            ]
        )

    def FindCoordinator(self, request: Any) -> Any:  # noqa: N802
        kind = messages.FindCoordinatorResponse
        return kind(
            coordinators=[kind.Coordinator(key=key, node_id=self.home(key)) for key in request.coordinator_keys]
        )

    def OffsetFetch(self, request: Any) -> Any:  # noqa: N802
        kind = messages.OffsetFetchResponse
        if request.groups:
            told = [
                kind.OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    error_code=self.error(each.group_id),
                    topics=[
                        kind.OffsetFetchResponseTopics(
                            name=topic,
                            partitions=[
                                kind.OffsetFetchResponsePartitions(partition_index=index, committed_offset=offset)
                            ],
                        )
                        for (topic, index), offset in self.committed[each.group_id].items()
                    ],
                )
                for each in request.groups
            ]
            return kind(groups=told)
        return kind(
            error_code=self.error(request.group_id),
            topics=[
                kind.OffsetFetchResponseTopic(
                    name=topic,
                    partitions=[kind.OffsetFetchResponsePartition(partition_index=index, committed_offset=offset)],
                )
                for (topic, index), offset in self.committed[request.group_id].items()
            ],
        )

    def DescribeGroups(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DescribeGroupsResponse
        return kind(
            groups=[
                kind.DescribedGroup(group_id=name, group_state="Empty" if name in self.committed else "Dead")
                for name in request.groups
            ]
        )

    def DeleteGroups(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DeleteGroupsResponse
        return kind(results=[kind.DeletableGroupResult(group_id=name) for name in request.groups_names])

    def DescribeShareGroupOffsets(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DescribeShareGroupOffsetsResponse
        return kind(
            groups=[
                kind.DescribeShareGroupOffsetsResponseGroup(
                    group_id=each.group_id,
                    topics=[
                        kind.DescribeShareGroupOffsetsResponseTopic(
                            topic_name=topic,
                            partitions=[
                                kind.DescribeShareGroupOffsetsResponsePartition(
                                    partition_index=index, start_offset=offset, lag=self.share_lag
                                )
                            ],
                        )
                        for (topic, index), offset in self.committed[each.group_id].items()
                    ],
                )
                for each in request.groups
            ]
        )

    def error(self, group: str) -> int:
        left = self.errors.get(group, [])
        return left.pop(0) if left else 0


@pytest.fixture
def groups() -> Coordinators:
    return Coordinators()


@pytest.fixture
def cluster(groups: Coordinators) -> Iterator[FakeCluster]:
    with FakeCluster(2) as two:
        for partition, end in zip(two.topic("t", 2), (10, 20)):
            partition.end = end
        groups.serve(two)
        yield two


@pytest.fixture
def admin(cluster: FakeCluster) -> Iterator[Admin]:
    with Client(cluster.bootstrap, timeout=5) as client, Admin(client) as one:
        yield one


def told(admin: Admin, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (group.group, row.topic, row.partition, row.offset, row.end, row.lag)
        for group in admin.group_lags(**options)
        for row in group.partitions
    ]


def test_hundreds_of_groups_take_a_question_to_each_coordinator_and_leader(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    for number in range(MANY):
        groups.committed[f"g{number}"] = {("t", 0): 4, ("t", 1): 21}
    found = told(admin)
    assert len(found) == 2 * MANY
    assert found[:2] == [("g0", "t", 0, 4, 10, 6), ("g0", "t", 1, 21, 20, 0)]
    asked = {api: len(cluster.requests(api)) for api in ("ListGroups", "FindCoordinator", "OffsetFetch", "ListOffsets")}
    assert asked == {"ListGroups": 2, "FindCoordinator": 0, "OffsetFetch": 4, "ListOffsets": 2}


def test_no_request_names_more_than_250_groups_however_many_there_are(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    for number in range(MANY):
        groups.committed[f"g{number}"] = {("t", 0): 4}
    assert len(admin.group_lags(members=True)) == MANY
    admin.delete_groups(list(groups.committed))
    named = {
        "FindCoordinator": [len(each.coordinator_keys) for each in cluster.requests("FindCoordinator")],
        "DescribeGroups": [len(each.groups) for each in cluster.requests("DescribeGroups")],
        "DeleteGroups": [len(each.groups_names) for each in cluster.requests("DeleteGroups")],
    }
    assert {api: (sum(counts), max(counts), len(counts)) for api, counts in named.items()} == {
        "FindCoordinator": (2 * MANY, 250, 6),
        "DescribeGroups": (MANY, 250, 4),
        "DeleteGroups": (MANY, 250, 4),
    }


def test_groups_are_described_whose_names_are_more_than_a_broker_takes_in_one_request() -> None:
    names = [f"{number:0200}" for number in range(MOST_BYTES // 200 + 1)]
    with (
        Broker(fsync="never") as broker,
        Client(broker.bootstrap, timeout=60) as client,
        Admin(client) as admin,
        pytest.raises(KafkaError) as refused,
    ):
        admin.describe_groups(names)
    assert refused.value.error is Error.GROUP_ID_NOT_FOUND


def test_a_broker_that_tells_of_one_group_at_a_time_is_asked_so(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    cluster.served[9] = (1, 7)
    groups.committed |= {"g1": {("t", 0): 4}, "g2": {}, "g3": {("t", 0): 10}}
    assert told(admin) == [("g1", "t", 0, 4, 10, 6), ("g3", "t", 0, 10, 10, 0)]


def test_what_is_gone_is_told_and_hides_nothing(cluster: FakeCluster, groups: Coordinators, admin: Admin) -> None:
    groups.committed["g1"] = {("gone", 0): 1, ("t", 0): 4, ("t", 7): 2}
    (group,) = admin.group_lags()
    assert [(row.topic, row.partition, row.offset, row.end, row.lag, row.note) for row in group.partitions] == [
        ("gone", 0, 1, None, None, "the topic does not exist"),
        ("t", 0, 4, 10, 6, ""),
        ("t", 7, 2, None, None, "the topic has 2 partitions"),
    ]
    assert (group.lag, group.longest) == (6, 6)


def test_a_partition_without_a_leader_is_told_so(
    cluster: FakeCluster, groups: Coordinators, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.client.admin.lags._LEADER_PATIENCE", 0.1)
    cluster.topics["t"][1].leader = -1
    groups.committed["g1"] = {("t", 0): 4, ("t", 1): 2}
    first, second = admin.group_lags()[0].partitions
    assert (first.lag, second.offset, second.end, second.lag) == (6, 2, None, None)
    assert "LEADER_NOT_AVAILABLE (5): partition t-1 has no leader" in second.note


def test_ends_that_were_found_are_told_though_brokers_then_keep_silent_about_leaders(
    cluster: FakeCluster, groups: Coordinators
) -> None:
    cluster.topics["t"][1].leader = -1
    groups.committed["g1"] = {("t", 0): 4, ("t", 1): 2}

    def last(request: Any) -> Any:
        cluster.script("Metadata", *[Silence()] * 20)
        return cluster.respond("ListOffsets", request, 0)

    with Client(cluster.bootstrap, timeout=1) as client, Admin(client) as admin:
        cluster.script("ListOffsets", last)
        first, second = admin.group_lags()[0].partitions
    assert (first.lag, second.offset, second.end) == (6, 2, None)
    assert "LEADER_NOT_AVAILABLE (5): partition t-1 has no leader" in second.note


def test_a_leader_that_moves_meanwhile_is_followed(cluster: FakeCluster, groups: Coordinators, admin: Admin) -> None:
    groups.committed["g1"] = {("t", 0): 4}

    def moved(request: Any) -> Any:
        cluster.topics["t"][0].leader = 1
        kind = messages.ListOffsetsResponse
        refused = kind.ListOffsetsPartitionResponse(partition_index=0, error_code=Error.NOT_LEADER_OR_FOLLOWER)
        return kind(topics=[kind.ListOffsetsTopicResponse(name="t", partitions=[refused])])

    cluster.script("ListOffsets", moved)
    assert told(admin) == [("g1", "t", 0, 4, 10, 6)]


def test_a_group_whose_coordinator_loads_is_asked_for_again(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    groups.committed |= {"g1": {("t", 0): 4}, "g2": {("t", 0): 5}}
    groups.errors["g1"] = [Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR]
    assert told(admin) == [("g1", "t", 0, 4, 10, 6), ("g2", "t", 0, 5, 10, 5)]


def test_a_connection_that_is_lost_is_made_good(cluster: FakeCluster, groups: Coordinators, admin: Admin) -> None:
    groups.committed |= {"g1": {("t", 0): 4}, "g2": {("t", 0): 5}}
    cluster.script("OffsetFetch", Close())
    cluster.script("ListOffsets", Close())
    assert told(admin) == [("g1", "t", 0, 4, 10, 6), ("g2", "t", 0, 5, 10, 5)]


def test_a_group_that_may_not_be_seen_is_told_so_beside_the_others(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    groups.committed |= {"g1": {("t", 0): 4}, "g2": {("t", 0): 5}}
    groups.errors["g1"] = [Error.GROUP_AUTHORIZATION_FAILED]
    first, second = admin.group_lags()
    assert (first.partitions, "GROUP_AUTHORIZATION_FAILED" in first.note) == ((), True)
    assert second.lag == 5


@pytest.mark.parametrize(("counted", "lag"), [(-1, 6), (3, 3)])
def test_a_share_group_is_behind_from_its_start_offset(
    cluster: FakeCluster, groups: Coordinators, admin: Admin, counted: int, lag: int
) -> None:
    groups.committed |= {"s1": {("t", 0): 4}, "g2": {("t", 0): 5}}
    groups.types["s1"] = "share"
    groups.share_lag = counted
    assert told(admin) == [("g2", "t", 0, 5, 10, 5), ("s1", "t", 0, 4, 10, lag)]


def test_an_answer_without_a_group_that_was_asked_for_is_an_error(
    cluster: FakeCluster, groups: Coordinators, admin: Admin
) -> None:
    groups.committed |= {"g1": {("t", 0): 4}, "g3": {}}
    cluster.script("OffsetFetch", lambda request: messages.OffsetFetchResponse())
    with pytest.raises(RemoteProtocolError, match="missing in the response"):
        admin.group_lags()


def test_groups_and_topics_are_chosen(cluster: FakeCluster, groups: Coordinators, admin: Admin) -> None:
    cluster.topic("u")
    groups.committed |= {"g1": {("t", 0): 4, ("u", 0): 0}, "g2": {("t", 0): 5}}
    assert told(admin, groups=["g1"]) == [("g1", "t", 0, 4, 10, 6), ("g1", "u", 0, 0, 0, 0)]
    assert told(admin, topics=["u"]) == [("g1", "u", 0, 0, 0, 0)]
    with pytest.raises(KafkaError, match=r"GROUP_ID_NOT_FOUND.*'g5'"):
        admin.group_lags(["g1", "g5"])


def test_brokers_are_asked_beside_each_other(cluster: FakeCluster, groups: Coordinators, admin: Admin) -> None:
    both = threading.Barrier(2, timeout=4)  # each answers only once the other has been asked

    def answer(request: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait()
        return groups.OffsetFetch(request)

    groups.committed |= {"g1": {("t", 0): 4}, "g2": {("t", 0): 5}}
    cluster.script("OffsetFetch", answer, answer)
    assert len(told(admin)) == 2
    assert not both.broken  # neither gave up waiting for the other

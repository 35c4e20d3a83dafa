"""Version choice, intersections over brokers, features: the seed's scenario and the numbers of Kafka's own tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import UnsupportedVersionError
from tagwire.rpc import Features, Obstacle, api_name, choose, intersect, negotiate

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19

# theirs, ours, the version chosen (facts 8.2, NodeApiVersionsTest)
CHOICES = [
    ((8, 10), (0, 13), 10),
    ((8, 10), (7, 8), 8),
    ((8, 10), (8, 9), 9),
    ((8, 10), (9, 9), 9),
    ((8, 10), (10, 11), 10),
    ((1, 2), (3, 4), None),
    ((2, 3), (0, 1), None),
    ((300, 300), (0, 13), None),
    ((5, 3), (0, 13), None),
]


@pytest.mark.parametrize(("theirs", "ours", "version"), CHOICES)
def test_the_highest_common_version_is_chosen(
    theirs: tuple[int, int], ours: tuple[int, int], version: int | None
) -> None:
    if version is None:
        assert negotiate({PRODUCE: ours}, {PRODUCE: theirs}) == {}
        with pytest.raises(UnsupportedVersionError):
            choose(PRODUCE, {PRODUCE: ours}, {PRODUCE: theirs})
    else:
        assert negotiate({PRODUCE: ours}, {PRODUCE: theirs}) == {PRODUCE: version}
        assert choose(PRODUCE, {PRODUCE: ours}, {PRODUCE: theirs}) == version


REFUSALS = [
    ({19: (0, 1)}, {}, "broker 2 at kafka-2:9092 serves CreateTopics 0-1; tagwire needs 2-7"),
    ({19: (1, 1)}, {}, "broker 2 at kafka-2:9092 serves CreateTopics 1; tagwire needs 2-7"),
    ({}, {}, "broker 2 at kafka-2:9092 does not serve CreateTopics; tagwire needs 2-7"),
    (
        {19: (2, 3)},
        {"CreateTopics": [3, 2]},
        "broker 2 at kafka-2:9092 serves CreateTopics 2-3; tagwire needs 2-7 without 2, 3",
    ),
]


@pytest.mark.parametrize(("theirs", "excluded", "says"), REFUSALS)
def test_nothing_in_common_names_api_both_ranges_and_broker(
    theirs: dict[int, tuple[int, int]], excluded: dict[str, list[int]], says: str
) -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        choose(CREATE_TOPICS, {19: (2, 7)}, theirs, broker="broker 2 at kafka-2:9092", excluded=excluded)
    assert str(caught.value) == says


def test_an_excluded_version_is_never_chosen() -> None:
    assert choose(FETCH, {1: (4, 12)}, {1: (0, 17)}, excluded={"Fetch": [12, 11], "Produce": [10]}) == 10


def test_an_api_nobody_knows_is_named_by_its_number() -> None:
    assert api_name(337) == "API 337"
    with pytest.raises(UnsupportedVersionError, match="serves API 337 0-1; tagwire does not speak it"):
        choose(337, {}, {337: (0, 1)})


@given(*[st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 9), st.integers(0, 9))) for _ in range(2)])
def test_a_negotiated_version_is_in_both_ranges_and_the_next_one_is_not(
    ours: dict[int, tuple[int, int]], theirs: dict[int, tuple[int, int]]
) -> None:
    for api, version in negotiate(ours, theirs).items():
        assert all(side[api][0] <= version <= side[api][1] for side in (ours, theirs))
        assert version + 1 > min(ours[api][1], theirs[api][1])


BROKERS = {"B1": {0: (0, 3), 1: (2, 3)}, "B2": {0: (1, 2), 1: (0, 3), 2: (0, 0)}}
FEATURES = Features({"Feature1": {0: (3, 3), 1: (2, 3)}, "Feature2": {0: (0, 1), 1: (2, 3)}})


def test_several_brokers_leave_the_intersection_of_their_ranges() -> None:
    assert intersect(*BROKERS.values()) == {0: (1, 2), 1: (2, 3)}
    assert intersect({0: (0, 1)}, {0: (2, 3)}) == {}
    assert intersect() == {}


def test_a_feature_is_usable_when_each_of_its_ranges_overlaps_what_all_share() -> None:
    assert FEATURES.usable(BROKERS) == {"Feature1": False, "Feature2": True}


def test_an_unusable_feature_tells_the_api_and_the_broker_that_forbid_it() -> None:
    assert FEATURES.obstacles("Feature1", BROKERS) == [Obstacle(api=0, side="B2", needs=(3, 3), has=(1, 2))]
    assert str(FEATURES.obstacles("Feature1", BROKERS)[0]) == "needs Produce 3; B2 has 1-2"
    assert FEATURES.obstacles("Feature2", BROKERS) == []


def test_the_client_can_forbid_a_feature_too() -> None:
    assert FEATURES.obstacles("Feature2", BROKERS, {0: (1, 12)}) == [Obstacle(1, "client", (2, 3), None)]
    assert str(FEATURES.obstacles("Feature2", BROKERS, {0: (1, 12)})[0]) == "needs Fetch 2-3; client lacks it"


def test_brokers_that_forbid_a_feature_only_together_are_both_named() -> None:
    together = Features({"f": {0: (2, 3)}}).obstacles("f", {"old": {0: (0, 2)}, "any": {0: (0, 9)}, "new": {0: (3, 5)}})
    assert [obstacle.side for obstacle in together] == ["old", "new"]


def test_a_feature_that_nobody_named_is_an_error() -> None:
    with pytest.raises(KeyError):
        FEATURES.obstacles("Feature3", BROKERS)

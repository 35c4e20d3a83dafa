"""Version choice, intersections over brokers, features: the seed's scenario and the numbers of Kafka's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import ConfigError, UnsupportedVersionError
from tagwire.rpc import (
    Features,
    Obstacle,
    api_name,
    choose,
    exclusions,
    intersect,
    negotiate,
    ranges_of,
    resembling,
    serving,
)
from tagwire.spec.releases import advertised

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19

# theirs, ours, the version chosen (NodeApiVersionsTest)
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
    ({19: (0, 1)}, {}, "broker 2 at kafka-2:9092 serves CreateTopics 0-1; tagwire needs 2-7 (Kafka 2.8 or newer)"),
    ({19: (1, 1)}, {}, "broker 2 at kafka-2:9092 serves CreateTopics 1; tagwire needs 2-7 (Kafka 2.8 or newer)"),
    ({}, {}, "broker 2 at kafka-2:9092 does not serve CreateTopics; tagwire needs 2-7 (Kafka 2.8 or newer)"),
    (
        {19: (2, 3)},
        {"CreateTopics": [3, 2]},
        "broker 2 at kafka-2:9092 serves CreateTopics 2-3; tagwire needs 2-7 without 2, 3, which are excluded",
    ),
]


@pytest.mark.parametrize(("theirs", "excluded", "says"), REFUSALS)
def test_nothing_in_common_names_api_both_ranges_and_broker(
    theirs: dict[int, tuple[int, int]], excluded: dict[str, str | list[int]], says: str
) -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        choose(CREATE_TOPICS, {19: (2, 7)}, theirs, broker="broker 2 at kafka-2:9092", excluded=exclusions(excluded))
    assert str(caught.value) == says


def test_an_excluded_version_is_never_chosen() -> None:
    excluded = exclusions({"Fetch": [12, 11], "Produce": "5-6", "ListOffsets": "8+"})
    assert choose(FETCH, {1: (4, 12)}, {1: (0, 17)}, excluded=excluded) == 10
    assert negotiate({0: (3, 6), 1: (4, 12), 2: (1, 11)}, {0: (0, 12), 1: (0, 11), 2: (0, 11)}, excluded=excluded) == {
        0: 4,
        1: 10,
        2: 7,
    }


BAD_EXCLUSIONS = [
    ({"Prodce": "5"}, "exclude: Kafka has no API 'Prodce'; Produce is one"),
    ({"Produce": "5..6"}, "exclude: Produce: '5..6' is no version range"),
    ({"Produce": "6-5"}, "exclude: Produce='6-5': holds no version"),
]


@pytest.mark.parametrize(("given", "says"), BAD_EXCLUSIONS)
def test_an_exclusion_that_means_nothing_is_an_error(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        exclusions(given)


@pytest.mark.parametrize(
    ("versions", "told"),
    [
        ({19: (2, 7)}, "Kafka 2.8 or newer"),
        ({0: (0, 2)}, "Kafka 3.9 or older"),
        ({0: (0, 12)}, "any Kafka"),
        ({45: (1, 1)}, "Kafka 4.1 or newer"),
        ({22: (0, 4)}, "Kafka 2.8 or newer"),  # brokers of ZooKeeper clusters; KRaft's from 3.0 on
        ({38: (1, 3)}, "Kafka 2.8 or newer"),
        ({18: (9, 9)}, None),
    ],
)
def test_the_releases_that_would_do_come_from_the_table(versions: dict[int, tuple[int, int]], told: str | None) -> None:
    for api, needed in versions.items():
        assert serving(api, needed) == told


@pytest.mark.parametrize("release", ["0.10.0", "2.8", "3.9", "4.0.0", "4.0.1", "4.4"])
def test_a_release_is_known_by_its_ranges(release: str) -> None:
    listed = {api: (found.lowest, found.highest) for api, found in advertised(release).items()}
    assert resembling(listed) == [release]
    assert resembling({**listed, 71: (0, 0), 72: (0, 0)}) == [release]
    assert resembling({**listed, 337: (0, 1)}) == []


def test_a_release_gives_ranges_to_assume() -> None:
    assert ranges_of("0.9.0")[0] == (0, 1)
    assert ranges_of("3.9.1")[0] == (0, 11)
    assert ranges_of("2.8")[22] == (0, 4)
    assert 4 not in ranges_of("3.9")  # what brokers of ZooKeeper clusters asked of each other
    with pytest.raises(ConfigError, match=r"release='1\.0'"):
        ranges_of("1.0")


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
    assert list(FEATURES) == ["Feature1", "Feature2"]
    assert [bool(FEATURES.usable(name, BROKERS)) for name in FEATURES] == [False, True]
    assert str(FEATURES.usable("Feature2", BROKERS)) == "Feature2 can be used"


def test_an_unusable_feature_tells_the_api_and_the_broker_that_forbid_it() -> None:
    answer = FEATURES.usable("Feature1", BROKERS)
    assert answer.obstacles == (Obstacle(api=0, side="B2", needs=(3, 3), has=(1, 2)),)
    assert str(answer) == "Feature1 cannot be used: needs Produce 3 (Kafka 2.8 or newer); B2 has 1-2"


def test_the_client_can_forbid_a_feature_too() -> None:
    answer = FEATURES.usable("Feature2", BROKERS, {0: (1, 12)})
    assert answer.obstacles == (Obstacle(1, "client", (2, 3), None),)
    assert "needs Fetch 2-3 (Kafka 0.10.0 to 3.9); client lacks it" in str(answer)


def test_brokers_that_forbid_a_feature_only_together_are_both_named() -> None:
    sides = {"old": {0: (0, 2)}, "any": {0: (0, 9)}, "new": {0: (3, 5)}}
    together = Features({"f": {0: (2, 3)}}).usable("f", sides)
    assert [obstacle.side for obstacle in together.obstacles] == ["old", "new"]


def test_a_feature_that_nobody_named_is_an_error() -> None:
    with pytest.raises(KeyError):
        FEATURES.usable("Feature3", BROKERS)


def test_features_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "features.toml"
    path.write_text(
        """
        [Feature1]
        Produce = 3
        Fetch = "2-3"

        ["a feature with a space"]
        Produce = [0, 1]
        1 = "2+"
        """
    )
    features = Features.load(path)
    assert list(features) == ["Feature1", "a feature with a space"]
    assert str(features.usable("Feature1", BROKERS)) == str(FEATURES.usable("Feature1", BROKERS))
    assert features.usable("a feature with a space", BROKERS)


BAD_FILES = [
    ("[f]\nProdce = 3", "f: Kafka has no API 'Prodce'"),
    ("[f]\nProduce = true", "f: Produce=True: allowed is"),
    ("[f]\nProduce = '3..4'", "f: Produce: '3..4' is no version range"),
    ("[f]\nProduce = [1, 2, 3]", "f: Produce=.1, 2, 3.: allowed is"),
    ("f = 3", "f: a feature is a table"),
    ("[f", "features.toml: "),
]


@pytest.mark.parametrize(("text", "says"), BAD_FILES)
def test_a_file_that_holds_no_features_is_an_error_naming_the_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "features.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        Features.load(path)

"""What a choice of versions makes of those that are deprecated, or not to be used (docs/negotiation.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import UnsupportedVersionError
from tagwire.rpc import Api, Features, api_of, choose, is_deprecated, negotiate, not_to_be_used

KEY = 9000
ADD_PARTITIONS_TO_TXN, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_ACLS = 24, 23, 29


def foo(**marks: Any) -> Api:
    document = {"apiKey": KEY, "validVersions": "0-9", "flexibleVersions": "none", "fields": []}
    request = document | {"type": "request", "name": "FooRequest"} | marks
    response = document | {"type": "response", "name": "FooResponse"}
    return api_of(json.dumps(request), json.dumps(response))


CHOICES = [
    ({}, (0, 9), 9),
    ({"doNotUseVersions": {"9": "bad"}}, (0, 9), 8),
    ({"doNotUseVersions": {"7-9": "bad"}}, (0, 9), 6),
    ({"doNotUseVersions": {"9": "bad", "7": "worse"}}, (0, 9), 8),
    ({"doNotUseVersions": {"2": "bad"}}, (0, 2), 1),
    ({"doNotUseVersions": {"2": "bad"}}, (2, 2), None),
    ({"deprecatedVersions": "0-3"}, (0, 9), 9),
    ({"deprecatedVersions": "0-3"}, (0, 3), 3),
    ({"deprecatedVersions": "5-9"}, (0, 9), 4),
    ({"deprecatedVersions": "5-9"}, (5, 9), 9),
    ({"deprecatedVersions": "0-9"}, (0, 9), 9),
    ({"deprecatedVersions": "0-3", "doNotUseVersions": {"4-9": "bad"}}, (0, 9), 3),
    ({"deprecatedVersions": "0-3", "doNotUseVersions": {"3": "bad"}}, (0, 3), 2),
    ({"deprecatedVersions": "0-3", "doNotUseVersions": {"0-9": "bad"}}, (0, 9), None),
]


@pytest.mark.parametrize(("marks", "theirs", "version"), CHOICES)
def test_a_version_not_to_be_used_is_never_chosen_and_a_deprecated_one_only_where_no_other_is_shared(
    marks: dict[str, Any], theirs: tuple[int, int], version: int | None
) -> None:
    apis = {KEY: foo(**marks)}
    chosen = negotiate({KEY: (0, 9)}, {KEY: theirs}, apis=apis)
    assert chosen == ({} if version is None else {KEY: version})
    if version is None:
        with pytest.raises(UnsupportedVersionError, match="must not be used: bad"):
            choose(KEY, {KEY: (0, 9)}, {KEY: theirs}, apis=apis)
    else:
        assert choose(KEY, {KEY: (0, 9)}, {KEY: theirs}, apis=apis) == version


def test_what_is_excluded_and_what_is_marked_both_stand_in_the_refusal() -> None:
    apis = {KEY: foo(doNotUseVersions={"1": "loses offsets", "8": "not shared"})}
    with pytest.raises(UnsupportedVersionError) as caught:
        choose(KEY, {KEY: (0, 9)}, {KEY: (0, 1)}, broker="broker 1", excluded={KEY: [0]}, apis=apis)
    assert str(caught.value) == (
        "broker 1 serves API 9000 0-1; tagwire needs 0-9 without 0, which are excluded; 1 must not be used: "
        "loses offsets"
    )


def test_kafkas_own_versions_for_brokers_alone_are_not_chosen() -> None:
    theirs = {ADD_PARTITIONS_TO_TXN: (0, 5), OFFSET_FOR_LEADER_EPOCH: (2, 4)}
    assert negotiate(theirs, theirs) == {ADD_PARTITIONS_TO_TXN: 3, OFFSET_FOR_LEADER_EPOCH: 4}
    with pytest.raises(UnsupportedVersionError, match="0-1 must not be used: for brokers alone"):
        choose(OFFSET_FOR_LEADER_EPOCH, {OFFSET_FOR_LEADER_EPOCH: (0, 4)}, {OFFSET_FOR_LEADER_EPOCH: (0, 1)})


def test_kafkas_deprecated_versions_are_chosen_where_nothing_else_is_shared() -> None:
    assert choose(DESCRIBE_ACLS, {DESCRIBE_ACLS: (0, 3)}, {DESCRIBE_ACLS: (0, 0)}) == 0
    assert is_deprecated(DESCRIBE_ACLS, 0)
    assert not is_deprecated(DESCRIBE_ACLS, 1)
    assert not is_deprecated(337, 0)
    assert [str(mark.versions) for mark in not_to_be_used(ADD_PARTITIONS_TO_TXN, (0, 4))] == ["4"]
    assert not_to_be_used(337, (0, 4)) == []


def test_a_feature_that_takes_what_must_not_be_used_is_unusable() -> None:
    features = Features({"verify": {ADD_PARTITIONS_TO_TXN: (4, 5)}, "add": {ADD_PARTITIONS_TO_TXN: (2, 4)}})
    brokers = {"kafka-1": {ADD_PARTITIONS_TO_TXN: (0, 5)}}
    assert features.usable("add", brokers)
    answer = features.usable("verify", brokers)
    assert not answer
    assert answer.obstacles[0].side == "spec"
    assert str(answer).startswith(
        "verify cannot be used: needs AddPartitionsToTxn 4-5, which must not be used: for brokers alone"
    )


versions = st.integers(0, 9)
ranges = st.tuples(versions, versions).map(lambda ends: (min(ends), max(ends)))


@given(ranges, ranges, st.frozensets(versions), ranges | st.none(), st.frozensets(versions))
def test_a_choice_is_the_highest_of_the_best_versions_there_are(
    ours: tuple[int, int],
    theirs: tuple[int, int],
    bad: frozenset[int],
    deprecated: tuple[int, int] | None,
    excluded: frozenset[int],
) -> None:
    marks: dict[str, Any] = {"doNotUseVersions": {str(version): "bad" for version in bad} or None}
    if deprecated is not None:
        marks["deprecatedVersions"] = f"{deprecated[0]}-{deprecated[1]}"
    old = set() if deprecated is None else set(range(deprecated[0], deprecated[1] + 1))
    left = set(range(ours[0], ours[1] + 1)) & set(range(theirs[0], theirs[1] + 1)) - bad - excluded
    best = left - old or left
    chosen = negotiate({KEY: ours}, {KEY: theirs}, excluded={KEY: excluded}, apis={KEY: foo(**marks)})
    assert chosen == ({KEY: max(best)} if best else {})

"""Version ranges (docs/wire-format.md#version-ranges)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.spec import Versions

NOTHING = Versions.parse("none")
ranges = st.builds(lambda a, b: Versions.parse(f"{min(a, b)}-{max(a, b)}"), *[st.integers(0, 30)] * 2) | st.just(
    NOTHING
)


@pytest.mark.parametrize(
    ("text", "lowest", "highest", "shown"),
    [
        ("3", 3, 3, "3"),
        ("0", 0, 0, "0"),
        ("4-5", 4, 5, "4-5"),
        ("4-4", 4, 4, "4"),
        ("3+", 3, 32767, "3+"),
        ("0+", 0, 32767, "0+"),
        ("  4-5 ", 4, 5, "4-5"),
        ("32767", 32767, 32767, "32767+"),
        ("007", 7, 7, "7"),
    ],
)
def test_a_range_is_parsed_and_shown_as(text: str, lowest: int, highest: int, shown: str) -> None:
    versions = Versions.parse(text)
    assert (versions.lowest, versions.highest, str(versions)) == (lowest, highest, shown)


@pytest.mark.parametrize("text", ["none", " none ", "5-3"])
def test_an_empty_range_is_none(text: str) -> None:
    versions = Versions.parse(text)
    assert versions == NOTHING
    assert not versions
    assert str(versions) == "none"
    assert list(versions) == []


@pytest.mark.parametrize(
    "text", ["", "-1", "+", "-", "1-", "+1", "1++", "a", "1-b", "1,2", "1 - 2", "1.0", "0x1", "None", "٣", "1-2-3"]
)
def test_what_is_no_range_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is no version range: write none, N, N-M or N") as caught:
        Versions.parse(text)
    assert repr(text.strip()) in str(caught.value)


@pytest.mark.parametrize("text", ["32768", "0-32768", "40000+"])
def test_a_version_is_an_int16(text: str) -> None:
    with pytest.raises(ValueError, match="goes beyond version 32767"):
        Versions.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("1-3", "2-4", "2-3"),
        ("1-3", "1-3", "1-3"),
        ("0+", "2-4", "2-4"),
        ("0+", "3+", "3+"),
        ("0-1", "2-4", "none"),
        ("none", "0+", "none"),
    ],
)
def test_ranges_intersect(one: str, other: str, shared: str) -> None:
    assert Versions.parse(one) & Versions.parse(other) == Versions.parse(shared)
    assert Versions.parse(other) & Versions.parse(one) == Versions.parse(shared)


@pytest.mark.parametrize(
    ("whole", "part", "rest"),
    [
        ("0+", "0-4", "5+"),
        ("1-10", "4-10", "1-3"),
        ("1-10", "5+", "1-4"),
        ("1-10", "1-3", "4-10"),
        ("1-3", "4+", "1-3"),
        ("1-3", "0+", "none"),
        ("3-3", "none", "3-3"),
        ("none", "0+", "none"),
    ],
)
def test_a_range_is_subtracted(whole: str, part: str, rest: str) -> None:
    assert Versions.parse(whole) - Versions.parse(part) == Versions.parse(rest)


def test_subtracting_from_the_middle_is_undefined() -> None:
    assert Versions.parse("0+") - Versions.parse("1-100") is None
    assert Versions.parse("1-5") - Versions.parse("3") is None


@pytest.mark.parametrize(
    ("outer", "inner", "covers"),
    [("0+", "3-4", True), ("3-4", "3-4", True), ("3-4", "3+", False), ("3-4", "none", True), ("none", "0", False)],
)
def test_a_range_covers_another(outer: str, inner: str, covers: bool) -> None:
    assert Versions.parse(outer).covers(Versions.parse(inner)) is covers


def test_only_ranges_without_an_end_are_open() -> None:
    assert [Versions.parse(text).is_open for text in ("0+", "0-3", "3", "none")] == [True, False, False, False]


@given(ranges, ranges)
def test_ranges_behave_as_the_sets_of_their_versions(one: Versions, other: Versions) -> None:
    ours, theirs = set(one), set(other)
    assert set(one & other) == ours & theirs
    assert one.covers(other) is (ours >= theirs)
    assert bool(one) is bool(ours)
    assert all((version in one) is (version in ours) for version in range(-1, 32))
    rest = one - other
    if rest is not None:
        assert set(rest) == ours - theirs


@given(ranges)
def test_a_range_is_shown_as_it_is_parsed(versions: Versions) -> None:
    assert Versions.parse(str(versions)) == versions

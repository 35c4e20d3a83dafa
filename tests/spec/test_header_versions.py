"""Which header version a body version travels under: what a spec may say of it, and what is derived (KIP-1313)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import SpecError
from tagwire.spec import Message, catalog, load
from tagwire.spec.module import contradictions, header_problems


def document(kind: str = "request", **more: Any) -> dict[str, Any]:
    name = f"Foo{kind.capitalize()}"
    stated = {
        "apiKey": 9000,
        "type": kind,
        "name": name,
        "validVersions": "0-6",
        "flexibleVersions": "3+",
        "fields": [],
    }
    return {key: value for key, value in (stated | more).items() if value is not ...}


def spec(kind: str = "request", **more: Any) -> Message:
    return load(json.dumps(document(kind, **more)))


def headers_of(message: Message) -> list[int]:
    return [message.header_version(version) for version in message.valid_versions]


HEADER_3 = spec(
    "header",
    name="RequestHeader",
    apiKey=...,
    validVersions="1-3",
    flexibleVersions="2+",
    fields=[
        {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
        {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
        {"name": "CorrelationId", "type": "int32", "versions": "0+"},
        {"name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+", "flexibleVersions": "none"},
        {"name": "ClientInstanceId", "type": "uuid", "versions": "3+", "taggedVersions": "3+", "tag": 0},
    ],
)


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({"0-2": "1", "3+": "2"}, [1, 1, 1, 2, 2, 2, 2]),
        ({"3+": 2, "0-2": 1}, [1, 1, 1, 2, 2, 2, 2]),
        ({"0": "1", "1-2": "1", "3-5": "2", "6+": "3"}, [1, 1, 1, 2, 2, 2, 3]),
        ({"0+": "2"}, [2] * 7),
        ({" 0-5 ": " 1 ", "6+": "2"}, [1] * 6 + [2]),
    ],
)
def test_a_map_says_the_header_version_of_each_body_version(stated: dict[str, Any], found: list[int]) -> None:
    message = spec(headerVersions=stated)
    assert headers_of(message) == found
    assert message.header_version(30_000) == found[-1]
    assert message.header_version(-1) == found[0]


BAD = [
    ([], "must be a map of 1 to 100 version ranges"),
    ({}, "must be a map of 1 to 100 version ranges"),
    ("0+", "must be a map of 1 to 100 version ranges"),
    (2, "must be a map of 1 to 100 version ranges"),
    ({str(number): "1" for number in range(200)}, "not 200 of them"),
    ({"x" * 10_000: "1"}, "is no version range"),
    ({"0..2": "1"}, "'0..2' is no version range: write none, N, N-M or N+"),
    ({"": "1"}, "is no version range"),
    ({"none": "1"}, "'none' holds no version"),
    ({"3-1": "1"}, "'3-1' holds no version"),
    ({"0-99999": "1"}, "goes beyond version 32767"),
    ({"1+": "1"}, "the ranges must start at 0, not at 1"),
    ({"0-2": "1"}, "the last range must have no end (0+), not be 0-2"),
    ({"0-2": "1", "3-6": "2"}, "the last range must have no end (3+), not be 3-6"),
    ({"0-2": "1", "4+": "2"}, "no header version for 3"),
    ({"0-1": "1", "4+": "2"}, "no header version for 2-3"),
    ({"0-3": "1", "3+": "2"}, "0-3 and 3+ overlap"),
    ({"0+": "1", "3+": "2"}, "0+ and 3+ overlap"),
    ({"0-9": "1", "3-4": "2", "10+": "2"}, "0-9 and 3-4 overlap"),
    ({"0-2": "2", "3+": "1"}, "header versions must not fall: 0-2 has 2, 3+ has 1"),
    ({"0-2": "1", "3-6": "2", "7+": "3"}, "7+ begins above the highest valid version, 6"),
    ({"0-2": "1", "3+": "x"}, "the header version of 3+ must be a number from 0 to 32767, not 'x'"),
    ({"0+": "one"}, "the header version of 0+ must be a number from 0 to 32767, not 'one'"),
    ({"0+": "-1"}, "must be a number from 0 to 32767, not '-1'"),
    ({"0+": "1.0"}, "must be a number"),
    ({"0+": 1.0}, "must be a number"),
    ({"0+": True}, "must be a number from 0 to 32767, not True"),
    ({"0+": None}, "must be a number from 0 to 32767, not None"),
    ({"0+": ["1"]}, "must be a number"),
    ({"0+": "32768"}, "must be a number"),
    ({"0+": "9" * 5000}, "must be a number"),
    ({"0+": "²"}, "must be a number"),
]


@pytest.mark.parametrize(("stated", "said"), BAD)
def test_a_map_that_breaks_a_rule_is_one_problem_of_at_most_a_few_words(stated: Any, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(headerVersions=stated)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("<text>: headerVersions")
    assert said in lines[0]
    assert len(lines[0]) < 300


def test_a_map_that_states_a_range_twice_is_no_json_object() -> None:
    text = json.dumps(document(headerVersions={})).replace("{}", '{"0+": "1", "0+": "2"}')
    with pytest.raises(SpecError, match="occurs twice"):
        load(text)


@pytest.mark.parametrize("kind", ["header", "data", "metadata"])
def test_only_requests_and_responses_have_header_versions(kind: str) -> None:
    with pytest.raises(SpecError, match="headerVersions belong to requests and responses only"):
        spec(kind, headerVersions={"0+": "1"})
    message = spec(kind)
    assert message.header_versions is None
    with pytest.raises(ValueError, match=f"{message.name} travels under no header"):
        message.header_version(0)


def test_an_api_that_is_gone_has_no_header_versions() -> None:
    assert spec(validVersions="none", flexibleVersions="none").header_versions is None
    with pytest.raises(SpecError, match="headerVersions belong to messages that have a version"):
        spec(validVersions="none", flexibleVersions="none", headerVersions={"0+": "1"})


def test_api_versions_is_answered_under_header_0_whatever_its_spec_says() -> None:
    answer = spec("response", apiKey=18)
    assert headers_of(answer) == [0] * 7
    assert spec("response", apiKey=18, headerVersions={"0+": "0"}) == answer
    with pytest.raises(SpecError, match="headerVersions: the response to ApiVersions has header version 0 always"):
        spec("response", apiKey=18, headerVersions={"0-2": "0", "3+": "1"})
    assert header_problems(answer, {}) == []


@pytest.mark.parametrize(
    ("message", "headers", "said"),
    [
        (
            spec(headerVersions={"0-2": "1", "3-5": "2", "6+": "3"}),
            {},
            "6+ cannot have header version 3: RequestHeader",
        ),
        (spec(headerVersions={"0-2": "1", "3+": "3"}), {"RequestHeader": HEADER_3}, None),
        (spec(headerVersions={"0-2": "0", "3+": "2"}), {"RequestHeader": HEADER_3}, "0-2 cannot have header version 0"),
        (spec(headerVersions={"0+": "1"}), {}, "3+ cannot have header version 1: a flexible version needs a flexible"),
        (spec(headerVersions={"0-4": "1", "5+": "2"}), {}, "3-4 cannot have header version 1: a flexible version"),
        (spec(headerVersions={"0+": "2"}), {}, None),
        (spec("response", headerVersions={"0+": "2"}), {}, "0+ cannot have header version 2: ResponseHeader has 0-1"),
        (spec("response", headerVersions={"0+": "0"}), {}, "3+ cannot have header version 0: a flexible version"),
        (spec("response"), {"RequestHeader": HEADER_3}, None),
        (spec("data"), {}, None),
    ],
)
def test_header_versions_are_those_of_the_headers_beside_them_or_of_kafkas(
    message: Message, headers: dict[str, Message], said: str | None
) -> None:
    found = header_problems(message, headers)
    assert len(found) == (said is not None)
    if said is not None:
        assert found[0].startswith(f"headerVersions: {said}")
    together = contradictions({f"{one.name}.json": one for one in (message, *headers.values())})
    assert [line for line in together if "headerVersions" in line] == [f"{message.name}.json: {line}" for line in found]


def kafkas_rule(message: Message, version: int) -> int:
    """The rule of Kafka's generator before there were maps (ApiMessageTypeGenerator)."""
    if message.type == "response":
        return 0 if message.api_key == 18 else int(version in message.flexible_versions)
    if message.api_key == 7 and version == 0:
        return 0
    return 2 if version in message.flexible_versions else 1


def test_every_version_of_every_message_of_the_catalog_has_the_header_that_kafka_gives_it() -> None:
    counted = 0
    for name in catalog.names():
        message = catalog.message(name)
        if message.type in ("request", "response"):
            assert header_problems(message, {}) == []
            for version in (*message.valid_versions, message.valid_versions.highest + 1, 32767):
                assert message.header_version(version) == kafkas_rule(message, version), (name, version)
                counted += 1
    assert counted > 1000


@st.composite
def maps(draw: st.DrawFn) -> dict[str, str]:
    starts = [0, *sorted(draw(st.sets(st.integers(1, 32766), max_size=20)))]
    headers = sorted(draw(st.lists(st.integers(0, 32767), min_size=len(starts), max_size=len(starts))))
    ends = [str(following - 1) for following in starts[1:]]
    ranges = [f"{start}-{end}" for start, end in zip(starts, ends)] + [f"{starts[-1]}+"]
    return dict(draw(st.permutations([(text, str(header)) for text, header in zip(ranges, headers)])))


@given(maps(), st.lists(st.integers(-5, 32767), max_size=10))
def test_a_map_read_and_written_says_the_same_of_every_version(stated: dict[str, str], versions: list[int]) -> None:
    message = spec(headerVersions=stated, validVersions="0-32766")
    assert message.header_versions is not None
    written = message.header_versions.document()
    again = spec(headerVersions=written, validVersions="0-32766")
    assert again.header_versions is not None
    assert again.header_versions.document() == written
    for version in versions:
        assert again.header_version(version) == message.header_version(version)
    found = [message.header_version(version) for version in sorted(versions)]
    assert all(before <= after for before, after in pairwise(found))

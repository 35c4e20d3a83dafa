"""What the specs of one directory must be together (docs/wire-format.md#the-spec-language)."""

from __future__ import annotations

import json

import pytest

from tagwire.spec import Message, load
from tagwire.spec.module import contradictions


def spec(name: str, kind: str, key: int | None = None, **more: str) -> Message:
    document = {"type": kind, "name": name, "validVersions": "0", "flexibleVersions": "none", "fields": []} | more
    return load(json.dumps(document if key is None else document | {"apiKey": key}))


REQUEST, RESPONSE = spec("FooRequest", "request", 1), spec("FooResponse", "response", 1)
KEY, VALUE = spec("FooKey", "coordinator-key", 1), spec("FooValue", "coordinator-value", 1)


def test_pairs_and_records_of_the_same_number_and_messages_without_one_stand_together() -> None:
    record, other = spec("FooRecord", "metadata", 1), spec("BarRecord", "metadata", 2)
    data = [spec(name, "data") for name in ("FooData", "BarData")]
    messages = [REQUEST, RESPONSE, KEY, VALUE, record, other, *data, spec("Header", "header")]
    assert contradictions({f"{message.name}.json": message for message in messages}) == []


def test_a_response_may_deprecate_what_its_request_does_or_say_nothing() -> None:
    request = spec("FooRequest", "request", 1, deprecatedVersions="0")
    for response in (RESPONSE, spec("FooResponse", "response", 1, deprecatedVersions="0")):
        assert contradictions({"a.json": request, "b.json": response}) == []


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([REQUEST], "0.json: apiKey 1 has a request and no response"),
        ([RESPONSE], "0.json: apiKey 1 has a response and no request"),
        ([KEY], "0.json: apiKey 1 has a coordinator-key and no coordinator-value"),
        ([VALUE], "0.json: apiKey 1 has a coordinator-value and no coordinator-key"),
        ([REQUEST, spec("BarResponse", "response", 2)], "1.json: apiKey 2 has a response and no request"),
        (
            [REQUEST, spec("FooResponse", "response", 1, deprecatedVersions="0")],
            "1.json: deprecatedVersions 0 are not those of FooRequest, none",
        ),
        ([REQUEST, RESPONSE, spec("BarRequest", "request", 1)], "2.json: the request of apiKey 1 is already in 0.json"),
        (
            [KEY, VALUE, spec("BarValue", "coordinator-value", 1)],
            "2.json: the coordinator-value of apiKey 1 is",
        ),
        (
            [spec("FooRecord", "metadata", 1), spec("BarRecord", "metadata", 1)],
            "1.json: the metadata of apiKey 1 is already in 0.json",
        ),
        (
            [spec("Foo", "data"), spec("Foo", "data")],
            "1.json: the message Foo is already described by 0.json",
        ),
    ],
)
def test_files_that_contradict_each_other_are_named(messages: list[Message], said: str) -> None:
    found = contradictions({f"{number}.json": message for number, message in enumerate(messages)})
    assert any(line.startswith(said) for line in found), found

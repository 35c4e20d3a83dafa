"""ApiVersions first: asked at the newest version, once more at what the broker lists, and never a third time."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import (
    ConfigError,
    DecodeError,
    Error,
    KafkaError,
    LocalProtocolError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.rpc import (
    BrokerFeatures,
    Connection,
    Handshake,
    Request,
    Unsupported,
    UnsupportedApiVersions,
    exclusions,
    is_software_text,
)

HIGHEST = messages.ApiVersionsRequest.valid_versions.highest


class Scripted:
    """A broker that serves ApiVersions up to `highest` and counts what it is asked."""

    def __init__(self, highest: int, *, lists: tuple[int, int] | None, refuses: int = 0) -> None:
        self.connection = Connection("broker", served={18: (0, highest)})
        self.lists = lists
        self.refuses = refuses
        self.asked: list[int] = []

    def exchange(self, data: bytes) -> bytes:
        self.connection.receive(data)
        event: Any = self.connection.next_event()
        self.asked.append(event.version)
        listed = [] if self.lists is None else [entry(18, *self.lists)]
        refusal = messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=listed)
        if isinstance(event, UnsupportedApiVersions):
            return self.connection.send_response(event, refusal)
        assert isinstance(event, Request)
        if event.version >= 3:
            assert event.decode().client_software_name == "tagwire"
        if self.refuses:
            return self.connection.send_response(event, refusal)
        answer = messages.ApiVersionsResponse(api_keys=[entry(18, 0, 4), entry(0, 3, 9), entry(337, 1, 2)])
        return self.connection.send_response(event, answer)


def entry(api: int, lowest: int, highest: int) -> Any:
    return messages.ApiVersionsResponse.ApiVersion(api_key=api, min_version=lowest, max_version=highest)


def shake(broker: Scripted) -> Handshake:
    client = Connection("client")
    handshake = Handshake(client, broker="broker 1 at kafka-1:9092")
    data = handshake.request()
    while not handshake.done:
        client.receive(broker.exchange(data))
        event: Any = client.next_event()
        data = handshake.receive(event)
    assert data == b""
    return handshake


# What the broker serves up to, what its refusal lists, the versions it is asked.
EXCHANGES = [
    ("knows the newest", HIGHEST, None, [HIGHEST]),
    ("lists an older one", 2, (0, 2), [HIGHEST, 2]),
    ("lists nothing", 2, None, [HIGHEST, 0]),
    ("lists newer ones than ours", 4, (0, 99), [HIGHEST, HIGHEST]),
    ("lists only version 0", 0, (0, 0), [HIGHEST, 0]),
]


@pytest.mark.parametrize(("name", "serves", "lists", "asked"), EXCHANGES, ids=[row[0] for row in EXCHANGES])
def test_the_second_question_is_the_lower_of_the_listed_maximum_and_ours(
    name: str, serves: int, lists: tuple[int, int] | None, asked: list[int]
) -> None:
    broker = Scripted(serves, lists=lists)
    if asked == [HIGHEST, HIGHEST]:
        with pytest.raises(
            UnsupportedVersionError,
            match="broker 1 at kafka-1:9092 refused ApiVersions 5 and then 5; it lists 0-99, tag",
        ):
            shake(broker)
    else:
        assert shake(broker).ranges == {18: (0, 4), 0: (3, 9), 337: (1, 2)}
    assert broker.asked == asked


def test_a_second_refusal_is_an_error() -> None:
    broker = Scripted(3, lists=(0, 3), refuses=1)
    with pytest.raises(
        UnsupportedVersionError, match="refused ApiVersions 5 and then 3; it lists 0-3, tagwire needs 0-5"
    ):
        shake(broker)
    assert broker.asked == [HIGHEST, 3]


@pytest.mark.parametrize("lists", [(HIGHEST + 1, HIGHEST + 3), (-3, -1)])
def test_a_listed_range_with_nothing_in_common_is_an_error_naming_both(lists: tuple[int, int]) -> None:
    with pytest.raises(
        UnsupportedVersionError,
        match=rf"serves ApiVersions {lists[0]}-{lists[1]}; tagwire needs 0-5 ",
    ):
        shake(Scripted(-1, lists=lists))


def test_a_refusal_whose_entries_are_miscounted_is_one_that_lists_nothing() -> None:
    client = Connection("client")
    handshake = Handshake(client)
    handshake.request()
    client.receive(bytes.fromhex("00000011 00000000 0023 01 0012 0000 0002 00000000"))
    event: Any = client.next_event()
    assert event.message.throttle_time_ms == 0
    assert handshake.receive(event)[6:8] == b"\x00\x00"


def test_any_other_error_ends_the_exchange() -> None:
    client = Connection("client")
    handshake = Handshake(client)
    handshake.request()
    client.receive(bytes.fromhex("0000000c 00000000 002a 01 00000000 00"))
    event: Any = client.next_event()
    with pytest.raises(KafkaError, match="INVALID_REQUEST") as caught:
        handshake.receive(event)
    assert caught.value.error is Error.INVALID_REQUEST


def test_a_broker_that_supports_nothing_is_named() -> None:
    handshake = Handshake(Connection("client"), broker="broker 1 at kafka-1:9092")
    handshake.request()
    with pytest.raises(UnsupportedVersionError, match="by server: broker 1 at kafka-1:9092 answered ApiV"):
        handshake.receive(Unsupported(18, HIGHEST, 0))


def test_an_answer_to_another_request_is_an_error() -> None:
    with pytest.raises(LocalProtocolError, match="where ApiVersions was due"):
        Handshake(Connection("client")).receive(Unsupported(3, 12, 0))


def test_features_of_the_broker_are_kept() -> None:
    client = Connection("client")
    handshake = Handshake(client)
    handshake.request()
    answer = (
        "00000000 0000 02 0012 0000 0005 00 00000000 03 00 17 02 11 6d65746164617461 2e76657273696f6e 0007 001e 00"
        "01 08 000000000000002a 02 17 02 11 6d65746164617461 2e76657273696f6e 0019 0019 00"
    )
    data = bytes.fromhex(answer)
    client.receive(len(data).to_bytes(4, "big") + data)
    event: Any = client.next_event()
    handshake.receive(event)
    assert handshake.features == BrokerFeatures({"metadata.version": (7, 30)}, {"metadata.version": 25}, epoch=42)


def test_versions_before_features_tell_of_none() -> None:
    assert shake(Scripted(2, lists=(0, 2))).features == BrokerFeatures({}, {}, epoch=-1)


@pytest.mark.parametrize("text", ["", "-app", "app-", "my app", "café", "a\nb", "1.0_2"])
def test_software_that_brokers_would_refuse_is_not_sent(text: str) -> None:
    assert not is_software_text(text)
    for software in [(text, "1.0"), ("app", text)]:
        with pytest.raises(ConfigError, match="allowed are letters, digits, and - and "):
            Handshake(Connection("client"), software=software)


def test_software_is_told_with_name_and_version() -> None:
    broker = Connection("broker")
    broker.receive(Handshake(Connection("client"), software=("my-app", "2.0.1")).request())
    request = broker.next_event()
    assert isinstance(request, Request)
    message = request.decode()
    assert (message.client_software_name, message.client_software_version) == ("my-app", "2.0.1")


def test_an_excluded_version_of_apiversions_is_not_asked_at() -> None:
    client = Connection("client")
    data = Handshake(client, excluded=exclusions({"ApiVersions": "3+"})).request()
    assert data[6:8] == b"\x00\x02"


HOSTILE_ANSWERS = [
    ("an empty body", "00000004 00000000"),
    ("half an error code", "00000005 00000000 00"),
    ("a refusal cut short", "00000008 00000000 0023 0000"),
    ("null where an array must be", "00000007 00000000 0000 00"),
    ("a null array in the layout of version 0", "0000000a 00000000 0023 ffffffff"),
    ("more entries than bytes", "0000000a 00000000 0023 7fffffff"),
]


@pytest.mark.parametrize(("name", "data"), HOSTILE_ANSWERS, ids=[row[0] for row in HOSTILE_ANSWERS])
def test_an_answer_that_is_none_is_a_typed_error(name: str, data: str) -> None:
    client = Connection("client")
    handshake = Handshake(client)
    handshake.request()
    client.receive(bytes.fromhex(data))
    with pytest.raises(TagwireError) as caught:
        handshake.receive(client.next_event())  # type: ignore[arg-type]
    assert isinstance(caught.value, DecodeError | UnsupportedVersionError)

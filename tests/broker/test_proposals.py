"""A protocol proposal on a real connection, from both sides: a draft's optional fields, and the shipped language."""

from __future__ import annotations

import asyncio

import pytest

from tagwire import message_class, messages
from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.errors import ConfigError, SpecError
from tagwire.rpc import Connection, Unsupported, api_of

REQUEST = """
{ "apiKey": 9000, "type": "request", "name": "FooRequest", "validVersions": "8-9", "versionsWithOptional": "9+",
  "fields": [ { "name": "Count", "type": "int32", "versions": "0+" }, ],
  "optionalFields": [ { "name": "Bar", "type": "string", "tag": "0x0002", "default": "hello world" }, ], }
"""
RESPONSE = """
{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "8-9", "versionsWithOptional": "9+",
  "optionalFields": [
    { "name": "UserAgent", "type": "string", "nullable": true, "tag": "0x0001" },
  ],
  "fields": [ { "name": "Foos", "type": "[]Foo", "versions": "0+",
      "optionalFields": [
        { "name": "Bar", "type": "string", "nullable": false, "tag": "0x0001", "default": "hello world" },
      ],
      "fields": [ { "name": "Baz", "type": "int16", "versions": "0+" }, ] }, ], }
"""
FLEXIBLE = [
    text.replace('"versionsWithOptional": "9+"', '"flexibleVersions": "9+"').replace(part, "")
    for text, part in (
        (
            REQUEST,
            '"optionalFields": [ { "name": "Bar", "type": "string", "tag": "0x0002", "default": "hello world" }, ], ',
        ),
        (
            """{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "8-9",
                 "versionsWithOptional": "9+",
                 "fields": [ { "name": "Foos", "type": "[]int16", "versions": "0+" } ] }""",
            " ",
        ),
    )
]

Foo = api_of(REQUEST, RESPONSE)


def answer_foo(call):
    kind = Foo.response
    foos = [kind.Foo(baz=number, bar=call.request.bar) for number in range(call.request.count)]
    return kind(foos=foos, user_agent=f"{call.client_id}/{call.version}" if call.version >= 9 else None)


@pytest.fixture
def trying(broker):
    broker.register((REQUEST, RESPONSE), answer_foo)
    return broker


@pytest.fixture
def wire(trying, connect):
    wire = connect(trying.bootstrap)
    wire.rpc = Connection("client", client_id="test", apis={Foo.key: Foo})
    return wire


def test_a_proposal_with_optional_fields_is_served_beside_kafkas_apis(wire, trying):
    answer = wire.ask(Foo.request(count=2, bar="hey"), 9)
    assert answer.user_agent == "test/9"
    assert [(foo.baz, foo.bar) for foo in answer.foos] == [(0, "hey"), (1, "hey")]
    assert wire.metadata().brokers[0].node_id == 1
    assert trying.requests.count(9000, version=9) == 1
    told = wire.ask(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert (9000, 8, 9) in {(entry.api_key, entry.min_version, entry.max_version) for entry in told.api_keys}


def test_its_bytes_on_the_wire_are_the_seeds(wire):
    """Request header v1, response header v0, optional-buffers first."""
    wire.socket.sendall(bytes.fromhex("0000001b 2328 0009 00000007 0004 74657374 0a 0002 0003 686579 00 00000001"))
    frame = wire.socket.recv(200)
    assert frame[4:8].hex() == "00000007"
    assert frame[8:] == Foo.response(user_agent="test/9", foos=[Foo.response.Foo(bar="hey", baz=0)]).encode(9)
    assert (
        frame[8:].hex() == "100001" + "0006" + b"test/9".hex() + "00" + "00000001" + "0a0001" + "0003686579" + "000000"
    )


def test_a_client_that_knows_the_proposal_settles_on_its_version_and_asks(trying):
    with Client(trying.bootstrap, client_id="mine", apis=[Foo]) as client:
        assert client.request(Foo.request(count=1)).user_agent == "mine/9"
        assert client.request(Foo.request(count=1), version=8).user_agent is None
        assert client.metadata().topics == {}


def test_versions_outside_the_optional_range_carry_no_buffers(wire):
    answer = wire.ask(Foo.request(count=1), 8)
    assert (answer.user_agent, answer.foos[0].bar) == (None, "hello world")


def test_a_version_that_the_proposal_does_not_have_is_not_served(wire):
    wire.socket.sendall(bytes.fromhex("0000000e 2328 000a 00000007 ffff 00000001"))
    assert wire.is_closed()


def test_bytes_that_are_no_such_request_close_the_connection(wire, caplog):
    wire.socket.sendall(bytes.fromhex("0000000c 2328 0009 00000007 ffff 0600"))
    assert wire.is_closed()
    assert "could not be handled" not in caplog.text


def test_a_proposal_in_the_shipped_language_travels_under_flexible_headers(broker, connect):
    api = api_of(*FLEXIBLE)

    async def answer(call):
        await asyncio.sleep(0)
        return api.response(foos=list(range(call.request.count)))

    broker.register((api.request, api.response), answer)
    wire = connect(broker.bootstrap)
    wire.rpc = Connection("client", apis={api.key: api})
    assert [wire.ask(api.request(count=3), version).foos for version in (8, 9)] == [[0, 1, 2]] * 2


def test_an_api_of_kafkas_can_be_replaced(broker, connect):
    def next_year(call):
        return messages.ListGroupsResponse(groups=[messages.ListGroupsResponse.ListedGroup(group_id="mine")])

    broker.register((messages.ListGroupsRequest, messages.ListGroupsResponse), next_year)
    assert connect(broker.bootstrap).ask(messages.ListGroupsRequest(), 5).groups[0].group_id == "mine"


def test_a_broker_of_the_sub_proposal_says_that_it_does_not_support_a_request(tmp_path, connect):
    with Broker(tmp_path / "data", unsupported="empty") as broker:
        wire = connect(broker.bootstrap)
        wire.rpc = Connection("client", apis={Foo.key: Foo})
        answer = wire.ask(Foo.request(count=1), 9)
        assert isinstance(answer, Unsupported)
        assert str(answer).startswith("request not supported by server")
        broker.register((Foo.request, Foo.response), answer_foo)
        assert len(wire.ask(Foo.request(count=1), 9).foos) == 1


WRONG = [
    ((RESPONSE, REQUEST), SpecError, "FooResponse is a response and FooRequest a request"),
    ((REQUEST, RESPONSE.replace("9000", "9001")), SpecError, "FooRequest has apiKey 9000, and FooResponse 9001"),
    ((REQUEST, RESPONSE.replace("8-9", "9")), SpecError, "FooRequest has versions 8-9, and FooResponse 9"),
    ((messages.ApiVersionsRequest, messages.ApiVersionsResponse), ConfigError, "apiKey 18 is ApiVersions"),
]


@pytest.mark.parametrize(("spec", "kind", "text"), WRONG)
def test_what_is_no_api_is_refused(spec, kind, text):
    with pytest.raises(kind, match=text):
        Broker().register(spec, answer_foo)


def test_classes_of_equal_specs_are_the_same():
    assert api_of(REQUEST, RESPONSE).request is message_class(REQUEST)

"""Requests that a test takes out of the broker's hands."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tagwire import messages
from tagwire.broker import Broker, delay, drop, hang_up
from tagwire.broker.interception import Interceptions
from tagwire.broker.session import HangUp
from tagwire.errors import ConfigError, Error


def test_a_request_is_seen_and_goes_its_way(broker, wire, make):
    wire.create("t")
    with broker.intercept("Produce", lambda call: None) as seen:
        assert wire.produce("t", make.records(b"v")).base_offset == 0
    (call,) = seen.calls
    assert (call.api, call.api_key, call.version, call.client_id) == ("Produce", 0, 9, "test")
    assert call.request.topic_data[0].name == "t"
    assert wire.produce("t", make.records(b"v")).base_offset == 1
    assert len(seen.calls) == 1


def test_a_request_can_be_rewritten(broker, wire):
    wire.create("a")
    wire.create("b")

    def ask_for_b(call):
        call.request.topics[0].name = "b"

    with broker.intercept("Metadata", ask_for_b):
        assert [topic.name for topic in wire.metadata("a").topics] == ["b"]
    assert [topic.name for topic in wire.metadata("a").topics] == ["a"]


def test_a_response_can_be_rewritten(broker, wire):
    async def throttle(call):
        response = await call.proceed()
        response.throttle_time_ms = 1234
        return response

    with broker.intercept("Metadata", throttle):
        assert wire.metadata().throttle_time_ms == 1234
    assert wire.metadata().throttle_time_ms == 0


def test_a_request_can_be_answered_without_the_broker(broker, wire, make):
    kind = messages.ProduceResponse
    refusal = kind.PartitionProduceResponse(index=0, error_code=Error.NOT_LEADER_OR_FOLLOWER, base_offset=-1)
    response = kind(responses=[kind.TopicProduceResponse(name="t", partition_responses=[refusal])])
    wire.create("t")
    with broker.intercept("Produce", lambda call: response, times=1):
        assert wire.produce("t", make.records(b"v")).error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert wire.produce("t", make.records(b"v")).base_offset == 0


def test_a_request_is_delayed_and_others_are_not(broker, wire, connect):
    released = threading.Event()

    async def hold(call):
        while not released.is_set():
            await delay(0.001)(call)

    with broker.intercept("Metadata", hold) as held:
        wire.send(messages.MetadataRequest(topics=None), 12)
        other = connect(broker.bootstrap)
        assert other.create("t").error_code == 0
        assert len(held.calls) <= 1
        released.set()
        assert wire.receive().topics is not None


def test_requests_that_are_delayed_keep_their_order(broker, wire, make):
    """Produce requests of one connection overlap, unless they are intercepted."""
    wire.create("t")
    with broker.intercept("Produce", delay(0.05), times=1):
        for number in range(3):
            wire.send(make.produce("t", make.records(b"%d" % number)), 9)
        offsets = [wire.receive().responses[0].partition_responses[0].base_offset for _ in range(3)]
    assert offsets == [0, 1, 2]


@pytest.mark.parametrize("handled", [True, False])
def test_a_connection_is_closed_before_or_after_the_request_is_carried_out(broker, wire, connect, make, handled):
    wire.create("t")
    with broker.intercept("Produce", hang_up(handled=handled), times=1):
        wire.send(make.produce("t", make.records(b"v")), 9)
        assert wire.is_closed()
    assert connect(broker.bootstrap).offset_at("t", -1).offset == handled


@pytest.mark.parametrize("handled", [True, False])
def test_an_answer_is_lost_and_the_connection_stays_open(broker, wire, connect, make, handled):
    wire.create("t")
    with broker.intercept("Produce", drop(handled=handled), times=1):
        wire.send(make.produce("t", make.records(b"v")), 9)
        wire.send(messages.MetadataRequest(topics=None), 12)
        wire.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            wire.receive()
    assert connect(broker.bootstrap).offset_at("t", -1).offset == handled


def test_a_dropped_request_does_not_hold_up_the_end(tmp_path, connect):
    broker = Broker(tmp_path / "data")
    broker.intercept("Metadata", drop())
    broker.start()
    wire = connect(broker.bootstrap)
    wire.send(messages.MetadataRequest(topics=None), 12)
    broker.stop()
    assert wire.is_closed()


def test_of_several_interceptions_the_newest_takes_the_request(broker, wire):
    taken = []
    with (
        broker.intercept("Metadata", lambda call: taken.append("old")),
        broker.intercept("Metadata", lambda call: taken.append("new"), times=1),
    ):
        wire.metadata()
        wire.metadata()
    wire.metadata()
    assert taken == ["new", "old"]


def test_any_api_can_be_intercepted_by_its_number(broker, wire):
    with broker.intercept(18, lambda call: messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION)):
        assert (
            wire.ask(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 0).api_keys
            == []
        )


def test_an_error_in_what_intercepts_closes_the_connection_and_is_told_to_the_test(broker, wire, connect):
    def broken(call):
        raise ZeroDivisionError("in the test")

    interception = broker.intercept("Metadata", broken)
    wire.send(messages.MetadataRequest(topics=None), 12)
    assert wire.is_closed()
    with pytest.raises(ZeroDivisionError, match="in the test"), interception:
        pass
    assert connect(broker.bootstrap).metadata().topics == []


def test_a_request_whose_handling_was_cut_off_closes_the_connection(broker, wire, make, connect):
    async def impatient(call):
        with suppress(TimeoutError):
            await asyncio.wait_for(call.proceed(), 0.01)

    wire.create("t")
    with broker.intercept("Fetch", impatient):
        wire.send(make.fetch("t", 0, max_wait_ms=5000, min_bytes=1), 12)
        wire.socket.settimeout(3)
        assert wire.is_closed()
    assert connect(broker.bootstrap).metadata("t").topics[0].error_code == 0


def test_a_function_may_hang_up_itself(broker, wire):
    def refuse(call):
        raise HangUp("no")

    with broker.intercept("Metadata", refuse):
        wire.send(messages.MetadataRequest(topics=None), 12)
        assert wire.is_closed()


def test_what_is_no_function_is_named():
    with pytest.raises(ConfigError, match=r"act='slow' is no function: write delay\(0.5\)"):
        Broker().intercept("Fetch", "slow")


@pytest.mark.parametrize("api", ["Fech", "fetch", ""])
def test_an_api_that_does_not_exist_is_named(api):
    with pytest.raises(ConfigError, match="is no API"):
        Broker().intercept(api, drop())


def test_threads_that_begin_and_end_interceptions_do_not_undo_each_other():
    rules, begun_too, ended = Interceptions(), threading.Barrier(3), threading.Event()

    def begin_and_end():
        begun_too.wait(20)
        while not ended.is_set():
            rules.add("Fetch", delay(1)).stop()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor() as pool:
            for _ in range(2):
                pool.submit(begin_and_end)
            begun_too.wait(20)
            begun = [rules.add(3, drop()) for _ in range(2000)]
            ended.set()
    finally:
        sys.setswitchinterval(before)
    for rule in reversed(begun):  # the newest takes
        assert rules.of(3) is rule
        rule.stop()
    assert rules.of(3) is None
    assert rules.of(1) is None

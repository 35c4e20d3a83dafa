"""What members of a group and their leader tell each other: the bytes of Java's ConsumerProtocol, and nothing but
typed errors for others."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.client import TopicPartition
from tagwire.client.consuming.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tagwire.errors import DecodeError

PARTITIONS = (TopicPartition("orders", 1), TopicPartition("clicks", 0), TopicPartition("orders", 0))
TOLD = Subscription(("orders", "clicks"), b"\x01\x02", PARTITIONS, 5, "a")

# Written by kafka-clients 4.4.0.
_TOPICS = "000000020006636c69636b7300066f7264657273000000020102"
_OWNED = "000000020006636c69636b73000000010000000000066f7264657273000000020000000000000001"
SUBSCRIPTIONS = {1: "0001" + _TOPICS + _OWNED, 3: "0003" + _TOPICS + _OWNED + "00000005000161"}
ASSIGNMENT = "00030000000200066f72646572730000000200000001000000000006636c69636b730000000100000000ffffffff"


@pytest.mark.parametrize("version", SUBSCRIPTIONS)
def test_a_subscription_has_the_bytes_that_java_writes(version: int) -> None:
    assert encode_subscription(TOLD, version).hex() == SUBSCRIPTIONS[version]


def test_an_assignment_has_the_bytes_that_java_writes() -> None:
    assert encode_assignment(Assignment(PARTITIONS)).hex() == ASSIGNMENT


def test_a_subscription_is_read_as_far_as_its_version_goes() -> None:
    read = {version: decode_subscription(encode_subscription(TOLD, version), "static") for version in range(4)}
    topics, sorted_partitions = ("clicks", "orders"), tuple(sorted(PARTITIONS))
    assert read[0] == Subscription(topics, b"\x01\x02", instance_id="static")
    assert read[1] == Subscription(topics, b"\x01\x02", sorted_partitions, instance_id="static")
    assert read[2] == Subscription(topics, b"\x01\x02", sorted_partitions, 5, instance_id="static")
    assert read[3] == Subscription(topics, b"\x01\x02", sorted_partitions, 5, "a", "static")


def test_a_newer_version_is_read_as_the_newest_that_is_known() -> None:
    newer = b"\x7f\xff" + encode_subscription(TOLD)[2:] + b"what version 4 has besides"
    assert decode_subscription(newer) == decode_subscription(encode_subscription(TOLD))
    newer = b"\x00\x04" + encode_assignment(Assignment(PARTITIONS))[2:] + b"more"
    assert set(decode_assignment(newer).partitions) == set(PARTITIONS)


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert decode_assignment(b"") == Assignment()


def test_an_empty_rack_is_no_rack() -> None:
    assert decode_subscription(encode_subscription(Subscription(("t",), rack=""))).rack is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x00", "the version is cut off"),
        (b"\xff\xff\x00\x00\x00\x00", "version -1; the lowest is 0"),
        (b"\x00\x01\x00\x00\x00\x05\x00", "at byte "),
        (b"\x00\x03\x7f\xff\xff\xff", "at byte "),
    ],
)
def test_bytes_that_are_none_are_refused_with_the_place(data: bytes, says: str) -> None:
    for decode in (decode_subscription, decode_assignment):
        with pytest.raises(DecodeError, match=says):
            decode(data)


@given(st.binary(max_size=60))
def test_whatever_bytes_come_nothing_but_a_decode_error_is_raised(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with suppress(DecodeError):
            decode(data)

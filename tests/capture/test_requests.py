"""Requests many at a time: gathered and written, they are what they are one by one."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import messages
from tagwire.capture import Census, Losses, Requests, observe, seen_in, take_census
from tagwire.capture.census import Offers
from tagwire.capture.tables import OBSERVATIONS, observation_batch

from .traffic import Talk, asks, offers, pcap, request, response

Metadata, MetadataAnswer = messages.MetadataRequest, messages.MetadataResponse
FAILED = MetadataAnswer(topics=[MetadataAnswer.MetadataResponseTopic(error_code=3)])


def talks(chance: random.Random) -> list[bytes]:
    """Some clients on some connections, of which some ask for versions, some again, and brokers that offer more and
    less; the packets of all of them in any order that keeps each connection's."""
    spoken = []
    for port in range(chance.randrange(1, 6)):
        talk = Talk(((chance.choice(["10.0.0.8", "10.0.0.9"]), 5000 + port), ("10.0.0.1", 9092)))
        if chance.random() < 0.7:
            talk.open()
        for at in range(chance.randrange(1, 8)):
            if chance.random() < 0.3:
                talk.client(asks(at, chance.choice(["a", "b"])))
                talk.broker(offers(at, Metadata=(0, chance.randrange(8, 12)), ApiVersions=(0, 3)))
            else:
                client_id = chance.choice(["one", None, "broker-1-fetcher-0"])
                talk.client(request(Metadata(topics=None), chance.choice([8, 9]), at, client_id))
                if chance.random() < 0.8:
                    talk.broker(response(chance.choice([MetadataAnswer(), FAILED]), 8, at))
        spoken.append(talk.packets())
    packets = []
    while spoken := [one for one in spoken if one]:
        packets.append(chance.choice(spoken).pop(0))
    return packets


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("requests") / "capture.pcap"


@settings(max_examples=40, deadline=None)  # the first call loads Arrow
@given(chance=st.randoms(use_true_random=False), bodies=st.booleans())
def test_a_census_of_columns_is_that_of_their_rows(path: Path, chance: random.Random, bodies: bool) -> None:
    path.write_bytes(pcap(talks(chance)))
    whole, single = Census(), Census()
    for seen in seen_in(path, Losses(), bodies=bodies):
        assert isinstance(seen, Requests)
        take_census(whole, seen)
    single.add_all(observe(path, Losses(), bodies=bodies))
    assert whole.usages() == single.usages()
    assert whole.timeline == single.timeline


@settings(max_examples=40, deadline=None)  # the first call loads Arrow
@given(chance=st.randoms(use_true_random=False), bodies=st.booleans())
def test_a_table_of_columns_is_that_of_their_rows(path: Path, chance: random.Random, bodies: bool) -> None:
    path.write_bytes(pcap(talks(chance)))
    losses, told = Losses(), Offers()
    batches = [observation_batch(seen, told) for seen in seen_in(path, losses, bodies=bodies)]
    whole = pa.Table.from_batches(batches, None if batches else OBSERVATIONS)  # everything may be lost
    rows = observation_batch(list(observe(path, losses, bodies=bodies)), Offers())
    assert whole.schema == OBSERVATIONS
    assert whole.to_pylist() == rows.to_pylist()


LINE = (
    "[2025-11-20 03:04:{second:02},000] DEBUG Completed request:"
    '{{"requestHeader":{{"requestApiKey":{api},"requestApiVersion":{version},"clientId":"{client}"}},'
    '"request":{{}},"response":{{"errorCode":{error},"apiKeys":[{{"apiKey":3,"minVersion":0,"maxVersion":{highest}}}]}},'
    '"connection":"10.0.0.1:9092-10.0.0.{address}:{port}-0-1"}}'
)


@settings(max_examples=40, deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_a_census_of_a_log_is_that_of_its_lines(path: Path, chance: random.Random) -> None:
    lines = [
        LINE.format(
            second=chance.randrange(50),
            api=chance.choice([3, 3, 3, 18]),
            version=chance.choice([1, 2]),
            client=chance.choice(["a", "b", "broker-1-fetcher-0"]),
            error=chance.choice([0, 3]),
            highest=chance.choice([8, 9]),
            address=chance.choice([8, 9]),
            port=chance.choice([5000, 5001]),
        )
        for _ in range(chance.randrange(1, 30))
    ]
    path.write_text("\n".join(line.replace("[2025", "[", chance.random() < 0.1) for line in lines))
    whole, single, losses = Census(), Census(), Losses()
    for seen in seen_in(path, losses):
        take_census(whole, seen)
    single.add_all(observe(path, Losses()))
    assert whole.usages() == single.usages()
    assert whole.timeline == single.timeline
    assert sum(usage.count for usage in whole.usages()) == len(lines)
    assert not losses.counts

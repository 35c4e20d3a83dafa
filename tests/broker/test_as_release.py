"""A broker that stands in for a release of Kafka."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import Client, Producer
from tagwire.errors import ConfigError
from tagwire.spec.releases import advertised, served

MODERN = ["2.8", "3.9", "4.1"]


def ranges(wire):
    request = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in wire.ask(request, 0).api_keys}


@pytest.mark.parametrize("release", MODERN)
def test_nothing_is_told_that_the_release_does_not_tell(broker, wire, connect, release):
    everything = ranges(wire)
    with Broker(as_release=release) as old:
        told = ranges(connect(old.bootstrap))
    kafka = advertised(release, listener="either")
    assert {0, 1, 3, 18} <= set(told) <= set(kafka)
    for key, (lowest, highest) in told.items():
        assert lowest == max(kafka[key].lowest, everything[key][0])
        assert highest == min(kafka[key].highest, everything[key][1])


def test_what_one_kind_of_cluster_served_is_served_by_a_broker_that_stands_in():
    with Broker(as_release="2.8") as broker, Producer(broker.bootstrap, transactional_id="payments") as producer:
        producer.init_transactions()  # KRaft, a preview in 2.8, had none
        producer.begin_transaction()
        producer.send("t", b"v")
        producer.commit_transaction()
        assert broker.requests.select("InitProducerId")[0].version == 4


def test_versions_that_the_release_did_not_have_are_not_answered(connect):
    with Broker(as_release="2.8") as broker:
        assert connect(broker.bootstrap).metadata(version=11).topics == []
        wire = connect(broker.bootstrap)
        wire.send(messages.MetadataRequest(topics=None), 12)
        assert wire.is_closed()


def test_kafka_4_tells_produce_0_and_does_not_serve_it(connect, make):
    assert (served("4.1")[0].lowest, advertised("4.1")[0].lowest) == (3, 0)
    with Broker(as_release="4.1") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert ranges(wire)[0][0] == 0
        wire.send(make.produce("t", make.records(b"v")), 2)
        assert wire.is_closed()


def test_a_release_before_api_versions_hangs_up_on_it(connect):
    with Broker(as_release="0.9.0") as broker:
        wire = connect(broker.bootstrap)
        wire.send(messages.ApiVersionsRequest(), 0)
        assert wire.is_closed()
        assert connect(broker.bootstrap).metadata("t", version=0).brokers[0].node_id == 1


def test_a_client_settles_on_what_the_release_has(connect):
    with Broker(as_release="2.8") as broker, Client(broker.bootstrap) as client:
        client.metadata()
        assert client.negotiated()["Metadata"] == 11
        assert broker.requests.select("Metadata")[0].version == 11


def test_a_release_that_nobody_knows_is_named():
    with pytest.raises(ConfigError, match=r"release='1\.1'"):
        Broker(as_release="1.1")

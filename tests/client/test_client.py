"""The client over real sockets: finding brokers, negotiating, routing, trying again, giving up."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import EARLIEST, LATEST, Client, Node, TopicPartition
from tagwire.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    DecodeError,
    Error,
    KafkaError,
    ProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)

from .fake_broker import SERVED, Close, FakeCluster, Late, Piecemeal, Raw, Silence


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


@pytest.fixture
def pair() -> Iterator[FakeCluster]:
    with FakeCluster(nodes=2) as two:
        yield two


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


# Connecting and negotiating ------------------------------------------------------------------------------------------


def test_apiversions_is_asked_first_on_every_connection(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.metadata()
        client.request(messages.MetadataRequest(topics=None), node=1)
    assert [(node, api) for node, api, _, _ in pair.seen] == [
        (0, "ApiVersions"),
        (0, "Metadata"),
        (1, "ApiVersions"),
        (1, "Metadata"),
    ]


def test_the_highest_common_version_is_spoken_and_told(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        client.metadata()
        assert client.negotiated() == {"Metadata": 12}
        assert client.versions() == SERVED
    assert cluster.requested_versions("Metadata") == [12]


def test_versions_hold_for_one_connection_only(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        client.metadata()
        cluster.brokers[0].stop()
        cluster.served[3] = (0, 8)
        cluster.brokers[0].start()
        client.metadata()
        assert client.negotiated() == {"Metadata": 8}
    assert cluster.requested_versions("Metadata") == [12, 8]


def test_a_broker_that_knows_only_old_apiversions_is_asked_once_more() -> None:
    with FakeCluster(served={**SERVED, 18: (0, 2)}) as cluster, Client(cluster.bootstrap) as client:
        client.metadata()
        assert cluster.requested_versions("ApiVersions") == [5, 2]


def test_an_excluded_version_is_not_spoken(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, exclude={"Metadata": "11-12"}) as client:
        client.metadata()
    assert cluster.requested_versions("Metadata") == [10]


def test_nothing_in_common_names_api_ranges_and_broker() -> None:
    with FakeCluster(served={**SERVED, 19: (0, 1)}) as cluster, Client(cluster.bootstrap) as client:
        client.metadata()
        with pytest.raises(UnsupportedVersionError, match=r"^broker 0 at 127.0.0.1:\d+ serves CreateTopics 0-1; "):
            client.request(messages.CreateTopicsRequest(), node=0)
        assert client.metadata().cluster_id == "fake"


def test_a_version_can_be_fixed_for_one_request(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        client.request(messages.MetadataRequest(topics=None), version=5)
    assert cluster.requested_versions("Metadata") == [5]


def test_an_unreachable_broker_is_named_with_every_address_tried() -> None:
    ports = closed_port(), closed_port()
    client = Client(f"127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}")
    with pytest.raises(ConnectError) as caught:
        client.metadata()
    tried = ", ".join(f"127.0.0.1:{port} (Connection refused)" for port in ports)
    assert str(caught.value) == f"no broker can be reached: {tried}"


def test_a_host_that_nobody_knows_is_named() -> None:
    with pytest.raises(ConnectError, match=r"no-such-host\.invalid:9092"):
        Client("no-such-host.invalid:9092").metadata()


def test_the_next_bootstrap_address_is_tried(cluster: FakeCluster) -> None:
    with Client(f"127.0.0.1:{closed_port()},{cluster.bootstrap}") as client:
        assert client.metadata().cluster_id == "fake"


@pytest.mark.parametrize(
    "bootstrap", ["", " , ", "kafka", "kafka:", "kafka:0", "kafka:70000", ":9092", "a:1,b", "a:1 2"]
)
def test_a_bootstrap_that_is_no_list_of_addresses_is_refused(bootstrap: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        Client(bootstrap)


@pytest.mark.parametrize("bootstrap", ["[::1]:9092", "kafka-1:9092, kafka-2:9092,"])
def test_a_bootstrap_may_have_brackets_and_blanks(bootstrap: str) -> None:
    Client(bootstrap).close()


# What answers is no broker, or breaks off ---------------------------------------------------------------------------

NO_BROKERS = [
    ("a web server", Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), ProtocolError, "HTTP"),
    ("a TLS listener", Raw(bytes.fromhex("15030300020250")), ProtocolError, "TLS"),
    ("a listener that hangs up", Close(), ConnectionLostError, "speaks TLS, or is older than Kafka 0.10"),
    ("garbage in a frame", Raw(bytes.fromhex("0000000600000000ffff")), TagwireError, "."),
    ("another correlation id", Raw(bytes.fromhex("0000000a00000007000000000000")), ProtocolError, "id 7 where ApiV"),
    (
        "an empty answer",
        Raw(bytes.fromhex("0000000400000000")),
        UnsupportedVersionError,
        "request not supported by server: broker at .* answered ApiVersions v5",
    ),
]


@pytest.mark.parametrize(("name", "action", "kind", "says"), NO_BROKERS, ids=[row[0] for row in NO_BROKERS])
def test_what_is_no_broker_is_told_at_once(
    cluster: FakeCluster, name: str, action: Any, kind: type[TagwireError], says: str
) -> None:
    cluster.script("ApiVersions", action)
    with Client(cluster.bootstrap) as client, pytest.raises(kind, match=says) as caught:
        client.metadata()
    if kind is not TagwireError:
        assert f"broker at 127.0.0.1:{cluster.brokers[0].port}" in str(caught.value)


def test_a_broker_that_never_answers_is_given_up(cluster: FakeCluster) -> None:
    cluster.script("Metadata", Silence())
    with (
        Client(cluster.bootstrap, timeout=0.6) as client,
        pytest.raises(RequestTimeoutError, match=r"broker at .* did not answer Metadata v12 within \d\.\d s"),
    ):
        client.request(messages.MetadataRequest(topics=None))


def test_an_answer_in_pieces_is_put_together(cluster: FakeCluster) -> None:
    cluster.topic("t", 100)
    cluster.script("Metadata", Piecemeal(7))
    with Client(cluster.bootstrap) as client:
        assert len(client.metadata().topics["t"].partitions) == 100


BROKEN_ANSWERS = [
    ("closed", Close(), ConnectionLostError, r"Metadata v12 \(correlation id 1\) was still to be answered"),
    ("a negative size", Raw(b"\xff\xff\xff\xff"), ProtocolError, "frame size -1"),
    ("half an answer", Raw(bytes.fromhex("000000100000000100")), RequestTimeoutError, "did not answer Metadata"),
    ("garbage", Raw(bytes.fromhex("0000000a 00000001 00 ffffffffff")), DecodeError, "MetadataResponse v12"),
    (
        "not supported",
        Raw(bytes.fromhex("00000004 00000001")),
        UnsupportedVersionError,
        "answered Metadata v12 with nothing",
    ),
]


@pytest.mark.parametrize(("name", "action", "kind", "says"), BROKEN_ANSWERS, ids=[row[0] for row in BROKEN_ANSWERS])
def test_a_request_is_sent_once_and_its_failure_told(
    cluster: FakeCluster, name: str, action: Any, kind: type[TagwireError], says: str
) -> None:
    cluster.script("Metadata", action)
    with Client(cluster.bootstrap, timeout=0.5) as client:
        with pytest.raises(kind, match=says):
            client.request(messages.MetadataRequest(topics=None))
        assert client.request(messages.MetadataRequest(topics=None)).cluster_id == "fake"
    assert len(cluster.requests("Metadata")) == 2


def test_a_connection_that_was_closed_while_idle_is_replaced_without_a_word(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        client.request(messages.MetadataRequest(topics=None))
        cluster.brokers[0].drop()
        time.sleep(0.05)
        client.request(messages.MetadataRequest(topics=None))
    assert cluster.brokers[0].connections == 2


def test_a_closed_client_may_be_used_again(cluster: FakeCluster) -> None:
    client = Client(cluster.bootstrap)
    for _ in range(2):
        assert client.metadata().cluster_id == "fake"
        client.close()


# Metadata -----------------------------------------------------------------------------------------------------------


def test_metadata_tells_brokers_topics_and_leaders(pair: FakeCluster) -> None:
    pair.topic("a", 3)
    pair.topic("__internal")
    with Client(pair.bootstrap) as client:
        found = client.metadata()
    ports = [broker.port for broker in pair.brokers]
    assert found.brokers == {0: Node(0, "127.0.0.1", ports[0]), 1: Node(1, "127.0.0.1", ports[1])}
    assert (found.cluster_id, found.controller_id) == ("fake", 0)
    assert {index: partition.leader for index, partition in found.topics["a"].partitions.items()} == {0: 0, 1: 1, 2: 0}
    assert [name for name, topic in found.topics.items() if topic.is_internal] == ["__internal"]


def test_a_topic_that_does_not_exist_has_an_error_and_is_not_created(cluster: FakeCluster) -> None:
    cluster.auto_create = True
    with Client(cluster.bootstrap) as client:
        topic = client.metadata(["missing"]).topics["missing"]
        assert topic.error is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert client.metadata(["missing"], allow_auto_create=True).topics["missing"].partitions


def test_no_topic_asked_for_gives_no_topic(cluster: FakeCluster) -> None:
    cluster.topic("a")
    with Client(cluster.bootstrap) as client:
        assert client.metadata([]).topics == {}


def test_metadata_is_asked_again_when_a_broker_goes_away(pair: FakeCluster) -> None:
    with Client(pair.bootstrap) as client:
        client.metadata()
        pair.script("Metadata", Close(), Close())
        assert client.metadata().cluster_id == "fake"
        pair.brokers[0].stop()
        assert client.metadata().cluster_id == "fake"


def test_a_broker_that_is_away_longer_than_the_timeout_is_an_error(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=0.6) as client:
        client.metadata()
        cluster.brokers[0].stop()
        with pytest.raises(ConnectError, match="no broker can be reached"):
            client.metadata()


def test_a_node_that_is_not_in_the_cluster_is_named(cluster: FakeCluster) -> None:
    with (
        Client(cluster.bootstrap) as client,
        pytest.raises(ConnectError, match=r"no broker 7 in the cluster; known: br"),
    ):
        client.request(messages.MetadataRequest(topics=None), node=7)


# Offsets ------------------------------------------------------------------------------------------------------------


def test_offsets_of_partitions_on_several_brokers(pair: FakeCluster) -> None:
    for index, partition in enumerate(pair.topic("t", 4)):
        partition.start, partition.end = index, 10 * index
    with Client(pair.bootstrap) as client:
        wanted = {("t", index): LATEST if index % 2 else EARLIEST for index in range(4)}
        assert client.list_offsets(wanted) == {("t", 0): 0, ("t", 1): 10, ("t", 2): 2, ("t", 3): 30}
        assert client.list_offsets({("t", 1): EARLIEST}) == {TopicPartition("t", 1): 1}
        assert client.list_offsets({("t", 1): 1_700_000_000_000}) == {("t", 1): -1}
        assert client.list_offsets({}) == {}


def test_a_leader_that_moved_is_found_again(pair: FakeCluster) -> None:
    partition = pair.topic("t")[0]
    partition.end = 5
    with Client(pair.bootstrap) as client:
        assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 5}
        partition.leader = 1
        assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 5}


def test_a_partition_without_a_leader_is_waited_for(pair: FakeCluster) -> None:
    partition = pair.topic("t")[0]
    partition.leader = -1
    with Client(pair.bootstrap, timeout=0.6) as client:
        with pytest.raises(KafkaError, match=r"LEADER_NOT_AVAILABLE .*: partition t-0 has no leader"):
            client.list_offsets({("t", 0): LATEST})
        partition.leader = 1
        assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 0}


@pytest.mark.parametrize("at", [("missing", 0), ("t", 7)])
def test_offsets_of_what_does_not_exist_name_it(cluster: FakeCluster, at: tuple[str, int]) -> None:
    cluster.topic("t")
    with Client(cluster.bootstrap, timeout=0.6) as client:
        with pytest.raises(KafkaError, match="missing" if at[0] == "missing" else "t-7: topic 't' has 1 ") as caught:
            client.list_offsets({at: LATEST})
        assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_new_to_the_broker_is_waited_for(cluster: FakeCluster) -> None:
    cluster.topic("new")[0].end = 3
    unknown = messages.MetadataResponse.MetadataResponseTopic(name="new", error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
    here = [messages.MetadataResponse.MetadataResponseBroker(node_id=0, host="127.0.0.1", port=cluster.brokers[0].port)]
    cluster.script("Metadata", *[lambda _: messages.MetadataResponse(brokers=here, topics=[unknown])] * 3)
    with Client(cluster.bootstrap) as client:
        assert client.list_offsets({("new", 0): LATEST}) == {("new", 0): 3}


def test_a_refusal_that_time_does_not_heal_is_raised(cluster: FakeCluster) -> None:
    cluster.topic("t")
    kind = messages.ListOffsetsResponse
    partition = kind.ListOffsetsPartitionResponse(partition_index=0, error_code=Error.TOPIC_AUTHORIZATION_FAILED)
    cluster.script(
        "ListOffsets",
        lambda _: kind(topics=[kind.ListOffsetsTopicResponse(name="t", partitions=[partition])]),
    )
    with (
        Client(cluster.bootstrap) as client,
        pytest.raises(KafkaError, match=r"TOPIC_AUTHORIZATION_FAILED \(29\): offsets of partition t-0"),
    ):
        client.list_offsets({("t", 0): LATEST})


def test_an_answer_without_the_partition_is_not_taken_for_one(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("ListOffsets", lambda _: messages.ListOffsetsResponse())
    with Client(cluster.bootstrap) as client, pytest.raises(KafkaError, match="no offset of t-0 in the response"):
        client.list_offsets({("t", 0): LATEST})


def test_a_late_answer_within_the_timeout_is_waited_for(cluster: FakeCluster) -> None:
    cluster.script("Metadata", Late(0.2))
    with Client(cluster.bootstrap) as client:
        assert client.metadata().cluster_id == "fake"

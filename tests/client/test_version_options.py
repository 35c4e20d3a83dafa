"""What a person may say about versions: leave some out, fix them, fall back; and what each refusal tells."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client
from tagwire.errors import ConfigError, ConnectionLostError, UnsupportedVersionError
from tagwire.rpc import BrokerFeatures, Features

from .fake_broker import SERVED, Close, FakeCluster, Raw


def test_a_release_is_taken_for_granted_without_asking() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, versions="2.8") as client:
        client.metadata()
        assert client.negotiated() == {"Metadata": 11}
        assert cluster.requests("ApiVersions") == []


def test_fixed_versions_are_spoken_without_asking() -> None:
    fixed = {"Metadata": 7, "ListOffsets": "2-3"}
    with FakeCluster() as cluster, Client(cluster.bootstrap, versions=fixed) as client:
        cluster.topic("t")
        client.metadata()
        client.list_offsets({("t", 0): -1})
        assert client.negotiated() == {"Metadata": 7, "ListOffsets": 3}
        with pytest.raises(UnsupportedVersionError, match="the versions are fixed, and none is given for CreateTopics"):
            client.request(messages.CreateTopicsRequest())
        assert cluster.requests("ApiVersions") == []


def test_a_broker_that_hangs_up_on_the_question_gets_the_fallback() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, fallback="2.8") as client:
        cluster.script("ApiVersions", Close())
        client.metadata()
        assert client.negotiated() == {"Metadata": 11}
        assert cluster.brokers[0].connections == 2
        assert len(cluster.requests("ApiVersions")) == 1


def test_without_a_fallback_it_is_an_error_that_says_what_it_may_be() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap) as client:
        cluster.script("ApiVersions", Close())
        with pytest.raises(ConnectionLostError, match=r"speaks TLS, or is older than Kafka 0\.10"):
            client.metadata()


def test_a_fallback_that_is_too_old_is_told_with_the_releases_that_would_do() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap, fallback="0.9.0") as client:
        cluster.script("ApiVersions", Close())
        says = r"serves Metadata 0; tagwire needs 4-13 \(Kafka 2\.8 or newer\)$"
        with pytest.raises(UnsupportedVersionError, match=says):
            client.metadata()


def test_a_fallback_is_for_brokers_that_hang_up_alone() -> None:
    with FakeCluster(served={**SERVED, 3: (0, 9)}) as cluster, Client(cluster.bootstrap, fallback="2.8") as client:
        client.metadata()
        assert client.negotiated() == {"Metadata": 9}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"exclude": {"Prodce": "5"}}, "exclude: Kafka has no API 'Prodce'"),
    ({"versions": "1.1"}, r"release='1\.1'"),
    ({"versions": {"Fetch": "x"}}, "versions: Fetch: 'x' is no version range"),
    ({"fallback": "0.9.9"}, r"release='0\.9\.9'"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
def test_an_option_that_means_nothing_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Client("127.0.0.1:9092", **options)


def test_an_empty_answer_names_request_and_broker() -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap) as client:
        cluster.script("Metadata", Raw(bytes.fromhex("00000004 00000001")))
        says = r"^request not supported by server: broker at 127\.0\.0\.1:\d+ answered Metadata v12 with nothing$"
        with pytest.raises(UnsupportedVersionError, match=says):
            client.metadata()
        assert client.metadata().cluster_id == "fake"  # the connection goes on


def test_features_hold_for_the_connection_they_came_on() -> None:
    kind = messages.ApiVersionsResponse

    def answer(level: int) -> Any:
        entries = [kind.ApiVersion(api_key=api, min_version=low, max_version=up) for api, (low, up) in SERVED.items()]
        return lambda _: kind(
            api_keys=entries,
            supported_features=[kind.SupportedFeatureKey(name="f", min_version=1, max_version=9)],
            finalized_features_epoch=level,
            finalized_features=[kind.FinalizedFeatureKey(name="f", max_version_level=level, min_version_level=level)],
        )

    with FakeCluster() as cluster, Client(cluster.bootstrap) as client:
        cluster.script("ApiVersions", answer(3), answer(4))
        assert client.features() == BrokerFeatures({"f": (1, 9)}, {"f": 3}, 3)
        cluster.brokers[0].stop()
        cluster.brokers[0].start()
        assert client.features() == BrokerFeatures({"f": (1, 9)}, {"f": 4}, 4)


def test_a_feature_is_asked_of_every_broker() -> None:
    features = Features({"new": {3: (14, 18)}, "old": {1: (11, 12)}, "absent": {337: (0, 0)}})
    with FakeCluster(nodes=2) as cluster, Client(cluster.bootstrap) as client:
        assert client.usable(features, "old")
        answer = client.usable(features, "new")
        assert not answer
        assert [obstacle.side for obstacle in answer.obstacles] == [
            *(f"broker {node} at 127.0.0.1:{broker.port}" for node, broker in enumerate(cluster.brokers)),
            "client",
        ]
        assert not client.usable(features, "absent")
        assert {node for node, api, _, _ in cluster.seen if api == "ApiVersions"} == {0, 1}

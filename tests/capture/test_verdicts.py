"""Verdicts: the same evidence, judged for each release by what that release serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tagwire.capture import Cause, Census, Endpoint, Observation, Outcome, Place, Usage, Verdict, features_of, judge
from tagwire.capture.census import client_of
from tagwire.capture.software import oldest_that_works, software_of
from tagwire.capture.verdicts import FEATURES, since
from tagwire.errors import ConfigError
from tagwire.rpc.ranges import Range
from tagwire.spec import releases

from .traffic import key

Asked = tuple[str, int]


def observation(api: str, version: int, **changes: object) -> Observation:
    told: dict[str, object] = {
        "time": 1_000_000,
        "client": Endpoint("10.0.0.9", 5000),
        "broker": Endpoint("10.0.0.1", 9092),
        "client_id": "c",
        "software_name": "",
        "software_version": "",
        "principal": "",
        "listener": "",
        "api_key": key(api),
        "api_version": version,
        "place": Place("log", 10),
        **changes,
    }
    return Observation(**told)  # type: ignore[arg-type]


def usage(*asked: Asked, offered: dict[str, Range] | None = None, asks: bool = True, **told: object) -> Usage:
    """One client's use; `offered`: what the broker listed, by the API's name."""
    census = Census()
    if asks:
        listed = {key(name): found for name, found in (offered or {}).items()}
        census.add(observation("ApiVersions", 3, offered=listed or None, **told))
    for api, version in asked:
        census.add(observation(api, version, **told))
    (found,) = census.usages()
    return found


def outcomes(used: Usage, *targets: str) -> list[str]:
    return [judge(used, target).outcome.value for target in targets]


def cause(verdict: Verdict) -> Cause:
    (finding,) = [one for one in verdict.findings if one.api != 18]
    return finding.cause


def test_versions_that_are_served_work() -> None:
    used = usage(("Produce", 9), ("JoinGroup", 5), asks=False)
    assert outcomes(used, "2.8", "3.9", "4.0.0", "4.3") == ["works"] * 4
    assert judge(used, "4.3").findings == ()


def test_4_0_0_is_not_4_0_1() -> None:
    used = usage(("JoinGroup", 1), asks=False)
    assert outcomes(used, "3.9", "4.0.0", "4.0.1", "4.0.2", "4.1") == ["works", "breaks", "works", "works", "works"]
    assert judge(used, "4.0.0").works_until == "3.9"


def test_a_client_that_does_not_ask_breaks_where_its_version_is_gone() -> None:
    verdict = judge(usage(("Produce", 0), asks=False), "4.3")
    assert (verdict.outcome, cause(verdict), verdict.works_until) == (Outcome.BREAKS, Cause.FIXED, "3.9")
    assert verdict.findings[0].served == releases.served("4.3")[0]


def test_a_client_that_was_offered_more_and_stayed_breaks() -> None:
    used = usage(("ListOffsets", 0), offered={"ListOffsets": (0, 8)})
    verdict = judge(used, "4.0.0")
    assert (verdict.outcome, cause(verdict)) == (Outcome.BREAKS, Cause.STAYS)


def test_of_a_client_that_used_the_newest_offered_nobody_knows() -> None:
    verdict = judge(usage(("ListOffsets", 0), offered={"ListOffsets": (0, 0)}), "4.0.0")
    assert (verdict.outcome, cause(verdict)) == (Outcome.UNCERTAIN, Cause.CAPPED)
    verdict = judge(usage(("ListOffsets", 0)), "4.0.0")
    assert (verdict.outcome, cause(verdict)) == (Outcome.UNCERTAIN, Cause.CAPPED)


def test_a_client_that_was_seen_to_use_a_served_version_too_adapts() -> None:
    verdict = judge(usage(("ListOffsets", 0), ("ListOffsets", 7), offered={"ListOffsets": (0, 0)}), "4.0.0")
    assert (verdict.outcome, cause(verdict)) == (Outcome.WORKS, Cause.ADAPTS)


def test_a_client_that_has_a_name_asked_for_versions_seen_or_not() -> None:
    used = usage(("Fetch", 17), asks=False, software_name="librdkafka")  # logged long after it connected
    assert used.asks_versions
    assert outcomes(used, "2.8") == ["works"]


def test_a_new_client_on_an_old_broker_adapts_if_it_asks_and_breaks_if_not() -> None:
    assert outcomes(usage(("Fetch", 17), offered={"Fetch": (4, 17)}), "2.8") == ["works"]
    assert outcomes(usage(("Fetch", 17), asks=False), "2.8") == ["breaks"]


def test_what_an_older_release_lacks_a_client_that_asks_may_do_without() -> None:
    asks, does_not = usage(("ConsumerGroupHeartbeat", 0)), usage(("ConsumerGroupHeartbeat", 0), asks=False)
    assert cause(judge(asks, "3.0")) is Cause.WITHOUT
    assert outcomes(asks, "3.0", "4.3") == ["uncertain", "works"]
    assert outcomes(does_not, "3.0", "4.3") == ["breaks", "works"]


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize(
    ("api", "version", "until"),
    [
        ("AlterUserScramCredentials", 0, "3.4"),
        ("CreateDelegationToken", 2, "3.5"),
        ("DescribeDelegationToken", 1, "3.5"),
    ],
)
def test_what_krafts_brokers_did_not_serve_yet_and_zookeepers_did_is_left_open(
    api: str, version: int, until: str, asks: bool
) -> None:
    used = usage((api, version), asks=asks)
    targets = ["2.8", "3.3", "3.4", "3.5", "3.6", "3.9"]
    left_open = targets.index(until)
    expected = ["works", *["uncertain"] * left_open, *["works"] * (len(targets) - 1 - left_open)]
    assert outcomes(used, *targets) == expected
    assert cause(judge(used, "3.3")) is Cause.ZOOKEEPER
    assert "are served, by brokers of ZooKeeper clusters" in str(judge(used, "3.3").findings[0])


def test_what_neither_kind_of_brokers_serves_breaks_whatever_the_cluster_is() -> None:
    verdict = judge(usage(("CreateDelegationToken", 9), asks=False), "3.3")
    assert (cause(verdict), verdict.findings[0].served) == (Cause.GONE, None)


@pytest.mark.parametrize(
    ("version", "target", "outcome"),
    [
        ("2.8.1", "4.3", "works"),
        ("0.10.0.1", "4.3", "breaks"),
        ("4.3.0", "0.10.0", "breaks"),
        ("9.9.9", "4.3", "breaks"),
    ],
)
def test_of_kafkas_own_client_its_release_is_known_and_decides(version: str, target: str, outcome: str) -> None:
    used = (
        usage(
            ("Fetch", 2),
            ("Fetch", 12),
            offered={"Fetch": (0, 12)},
            software_name="apache-kafka-java",
            software_version=version,
        )
        if version == "2.8.1"
        else usage(
            ("Fetch", 2) if target == "4.3" else ("Fetch", 17),
            offered={"Fetch": (0, 17)},
            software_name="apache-kafka-java",
            software_version=version,
        )
    )
    assert outcomes(used, target) == [outcome]


def test_the_oldest_release_of_kafkas_client_that_helps_is_named() -> None:
    used = usage(("Produce", 2), ("Fetch", 2), software_name="apache-kafka-java", software_version="0.10.0.1")
    verdict = judge(used, "4.3")
    assert (verdict.outcome, verdict.works_until, verdict.upgrade) == (Outcome.BREAKS, "3.9", "apache-kafka-java 2.8")
    # of transactions and tokens, too, which brokers of KRaft clusters did not serve yet, and clients spoke
    used = usage(
        *(("Produce", 2), ("InitProducerId", 1), ("CreateDelegationToken", 0)),
        offered={"Produce": (0, 9)},
        software_name="apache-kafka-java",
        software_version="1.1.0",
    )
    assert judge(used, "4.3").upgrade == "apache-kafka-java 2.8"
    other = judge(usage(("Produce", 0), asks=False, software_name="mine"), "4.3")
    assert other.upgrade is None


def test_what_is_told_before_authentication_is_the_clients_that_authenticated() -> None:
    census = Census()
    for principal, api in (("", "ApiVersions"), ("User:ANONYMOUS", "SaslHandshake"), ("User:a", "Produce")):
        census.add(observation(api, 1, principal=principal))
    (found,) = census.usages()
    assert found.client.principal == "User:a"
    assert found.asks_versions
    assert set(found.apis) == {18, 17, 0}


def test_two_principals_behind_one_address_stay_two_clients() -> None:
    census = Census()
    for principal in ("", "User:a", "User:b"):
        census.add(observation("Produce" if principal else "ApiVersions", 3, principal=principal))
    found = census.usages()
    assert [one.client.principal for one in found] == ["User:a", "User:b"]
    assert all(one.asks_versions for one in found)


def test_uses_keep_their_count_their_times_and_their_evidence() -> None:
    census = Census()
    for time, position in ((50, 5), (20, 2), (90, 9), (-1, 0)):
        census.add(observation("Produce", 3, time=time, place=Place("log", position), count=2, error_codes=(6,)))
    (found,) = census.usages()
    use = found.apis[0][3]
    assert (use.count, use.first, use.last) == (8, 20, 90)
    assert use.places == (Place("log", 2), Place("log", 9))
    assert use.error_codes == {6: 8}
    assert census.timeline == {0: {3: {0: 6}}}


def test_brokers_are_told_from_clients_by_what_only_brokers_ask() -> None:
    assert usage(("BrokerHeartbeat", 1)).is_broker
    assert usage(("WriteTxnMarkers", 1)).is_broker
    assert usage(("FindCoordinator", 6), ("ReadShareGroupState", 0)).is_broker
    assert usage(("AddPartitionsToTxn", 4)).is_broker  # whether a transaction is open, of its coordinator (KIP-890)
    assert not usage(("AddPartitionsToTxn", 3)).is_broker
    assert not usage(("Fetch", 12), ("DescribeCluster", 0)).is_broker


@pytest.mark.parametrize("client_id", ["broker-2-fetcher-0", "raft-client-2", "ReplicaFetcherThread-0-1"])
def test_followers_ask_what_consumers_do_and_are_told_by_the_client_id_that_they_have(client_id: str) -> None:
    used = (("Fetch", 8), ("OffsetForLeaderEpoch", 1))
    assert usage(*used, asks=False, client_id=client_id).is_broker
    assert not usage(*used, asks=False, client_id="orders-fetcher-0").is_broker


def test_what_followers_fetch_is_not_counted_among_the_versions_of_clients_over_time() -> None:
    census = Census()
    for client_id, version in (("broker-1-fetcher-0", 17), ("raft-client-1", 17), ("c", 12), (None, 12)):
        census.add(observation("Fetch", version, client_id=client_id))
    assert census.timeline == {1: {12: {0: 2}}}
    assert sum(used.count for used in census.usages()) == 4


def test_features_are_told_by_the_versions_that_have_them() -> None:
    assert features_of(usage(("Produce", 2), asks=False)) == []
    assert features_of(usage(("Fetch", 13), ("JoinGroup", 4), asks=False)) == [
        "consumer groups",
        "fetch sessions",
        "fetching from followers",
        "topic ids",
    ]


def test_a_release_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"release='9\.9'"):
        judge(usage(("Produce", 3)), "9.9")


@pytest.mark.parametrize("api", ["ApiVersions", "Fetch"])
def test_what_an_unnamed_connection_said_is_the_software_s_that_others_of_that_id_named(api: str) -> None:
    census = Census()
    census.add(observation("ApiVersions", 3, software_name="kgo", offered={key("Fetch"): (0, 17)}))
    census.add(observation(api, 5, client=Endpoint("10.0.0.9", 5001)))
    (found,) = census.usages()
    assert (found.client.software_name, found.count, found.connections) == ("kgo", 2, 2)
    if api == "Fetch":
        assert found.apis[key("Fetch")][5].highest_offered == 17


def test_kafka_s_own_client_names_itself_so_what_is_unnamed_is_another_s() -> None:
    census = Census()
    java = {"software_name": "apache-kafka-java", "software_version": "3.9.2"}
    census.add(observation("ApiVersions", 4, client=Endpoint("10.0.0.9", 5001)))  # refused, and asked again
    census.add(observation("ApiVersions", 3, client=Endpoint("10.0.0.9", 5001), **java))
    census.add(observation("Produce", 9, client=Endpoint("10.0.0.9", 5001), **java))
    assert [usage.count for usage in census.usages()] == [3]
    census.add(observation("Produce", 2))
    unnamed, named = census.usages()
    assert (unnamed.client.software, named.client.software) == ("", "apache-kafka-java 3.9.2")


def test_of_two_that_share_an_id_neither_is_given_what_is_unnamed() -> None:
    census = Census()
    for told in ({"software_name": "kgo"}, {"software_name": "librdkafka"}, {}):
        census.add(observation("Fetch", 11, **told))
    assert [usage.client.software_name for usage in census.usages()] == ["", "kgo", "librdkafka"]


@pytest.mark.parametrize(
    ("told", "software"),
    [
        ({"software_name": "librdkafka", "software_version": "2.15.0"}, ("librdkafka", "2.15.0")),
        (
            {"software_name": "confluent-kafka-python", "software_version": "2.16.1-rdkafka-2.16.0"},
            ("librdkafka", "2.16.0"),
        ),
        (
            {"software_name": "karafka", "software_version": "v2.5.0-rdkafka-ruby-v0.19.5-librdkafka-v2.8.0"},
            ("librdkafka", "2.8.0"),
        ),
        (
            {"software_name": "confluent-kafka-javascript", "software_version": "v1.3.0-librdkafka-2.10.0-RC1"},
            ("librdkafka", "2.10.0"),
        ),
        ({"software_name": "kgo", "software_version": "v1.22.2"}, ("franz-go", "1.22.2")),
        ({"client_id": "kafka-python-1.4.7"}, ("kafka-python", "1.4.7")),
        ({"client_id": "aiokafka-0.8.1-3"}, ("aiokafka", "0.8.1")),
        ({"client_id": "rdkafka"}, ("librdkafka", "")),
        ({"client_id": "billing@host-7 (github.com/segmentio/kafka-go)"}, ("kafka-go", "")),
        ({"client_id": "kafka-python-producer-1"}, ("kafka-python", "")),
        ({"client_id": "aiokafka-producer-12"}, ("aiokafka", "")),
        ({"client_id": "billing"}, ("", "")),
        ({"client_id": None}, ("", "")),
        ({"client_id": "rdkafka", "software_name": "mine", "software_version": "1"}, ("mine", "1")),
    ],
)
def test_software_is_known_by_what_it_tells_or_by_the_client_id_it_has_by_default(
    told: dict[str, object], software: tuple[str, str]
) -> None:
    assert software_of(client_of(observation("Produce", 3, **told))) == software


def test_the_oldest_release_of_another_client_that_was_tried_and_works_is_named() -> None:
    verdict = judge(usage(("ListOffsets", 0), ("OffsetCommit", 1), asks=False, client_id="rdkafka"), "4.3")
    assert verdict.upgrade is not None
    software, version = verdict.upgrade.split()
    assert software == "librdkafka"
    assert oldest_that_works("librdkafka", "0.11.6", "4.3") == version
    assert oldest_that_works("librdkafka", version, "4.3") is None  # an upgrade is newer
    assert oldest_that_works("librdkafka", "", "4.1") == version  # works on 4.0.2 and on 4.3
    assert oldest_that_works("librdkafka", "master-7f3a", "4.3") == version
    assert oldest_that_works("librdkafka", "", "3.9") is None  # not tried on that, nor before it
    assert oldest_that_works("kafka-node", "", "4.3") is None  # the newest breaks
    assert oldest_that_works("nobody's", "", "4.3") is None
    used = usage(("JoinGroup", 1), ("ListOffsets", 0), asks=False, client_id="app@host (github.com/segmentio/kafka-go)")
    assert judge(used, "4.3").upgrade == "kafka-go 0.4.48"


@pytest.mark.parametrize(
    ("version", "api", "cause"),
    [
        ("1.6.0", "ListOffsets", Cause.BROKE),
        ("1.7.0", "ListOffsets", Cause.BROKE),
        ("1.8.0", "ListOffsets", Cause.CAPPED),  # between what was tried
        ("1.8.2", "ListOffsets", Cause.WORKED),
        ("2.99.0", "ListOffsets", Cause.WORKED),
        ("2.99.0", "DescribeConfigs", Cause.CAPPED),  # no part of what was tried
        ("", "ListOffsets", Cause.CAPPED),
        ("unknown", "ListOffsets", Cause.CAPPED),  # of no release
        ("master-7f3a", "ListOffsets", Cause.CAPPED),
        ("9" * 5000, "ListOffsets", Cause.CAPPED),  # longer than Python reads a number
    ],
)
def test_where_the_evidence_does_not_tell_what_was_tried_decides(version: str, api: str, cause: Cause) -> None:
    used = usage((api, 0), software_name="librdkafka", software_version=version)
    assert judge(used, "4.3").findings[0].cause is cause


def test_software_that_speaks_what_it_is_told_is_not_judged_by_its_release() -> None:
    used = usage(("ListOffsets", 0), software_name="sarama", software_version="1.43.0")
    assert judge(used, "4.3").outcome is Outcome.UNCERTAIN


def test_of_a_feature_it_is_known_since_when_brokers_have_it() -> None:
    assert {name: first for name in FEATURES if (first := since(name)) is not None} == {
        "transactions of KIP-890": "4.0.0",
        "consumer groups of KIP-848": "3.7",
        "share groups": "4.1",
        "streams groups": "4.2",
        "topic ids": "3.1",
        "client metrics": "3.7",
    }


def test_the_page_lists_the_clients_that_were_tried() -> None:
    folder = Path(__file__).parents[2]
    page = (folder / "docs" / "audit.md").read_text(encoding="utf-8")
    tried = json.loads((folder / "src" / "tagwire" / "capture" / "tried.json").read_text(encoding="utf-8"))
    for software, versions in tried.items():
        told = {fate: [v for v, works in versions.items() if all(works.values()) is fate] for fate in (False, True)}
        assert f"| {software} | {', '.join(told[False]) or '-'} | {', '.join(told[True]) or '-'} |\n" in page

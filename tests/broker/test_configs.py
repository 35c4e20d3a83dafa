"""DescribeConfigs, IncrementalAlterConfigs and AlterConfigs."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener
from tagwire.broker.config_entries import TOPIC_CONFIGS, Type
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import Error

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
ON_THE_TOPIC, STATIC, DEFAULT = 1, 4, 5


def describe(wire, name, kind=TOPIC, version=4, keys=None, **options):
    request = messages.DescribeConfigsRequest
    resource = request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return wire.ask(request(resources=[resource], **options), version).results[0]


def configs(wire, name, **options):
    return {config.name: config for config in describe(wire, name, **options).configs}


def alter(wire, name, *changes, kind=TOPIC, version=1, validate_only=False):
    """The outcome for the one topic; `changes` are (name, operation, value)."""
    request = messages.IncrementalAlterConfigsRequest
    given = [request.AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
    resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=given)
    return wire.ask(request(resources=[resource], validate_only=validate_only), version).responses[0]


def set_all(wire, name, version=2, validate_only=False, **given):
    request = messages.AlterConfigsRequest
    configs = [request.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in given.items()]
    resource = request.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
    return wire.ask(request(resources=[resource], validate_only=validate_only), version).responses[0]


@pytest.fixture
def topic(wire):
    wire.create("t", retention_ms="1000")
    return "t"


def test_every_configuration_of_a_topic_is_known_with_its_type():
    assert set(TOPIC_CONFIGS) == set(TopicConfig().as_strings())
    types = {field.name.replace("_", "."): field.type for field in fields(TopicConfig)}
    for name, known in TOPIC_CONFIGS.items():
        expected = {"int": {Type.INT, Type.LONG}, "float": {Type.DOUBLE}, "str": {Type.STRING, Type.LIST}}
        expected["bool"] = {Type.BOOLEAN}
        assert known.type in expected[types[name]], name


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_every_configuration_with_its_value_and_source(wire, topic, version):
    found = configs(wire, topic, version=version)
    assert {name: config.value for name, config in found.items()} == {
        **TopicConfig().as_strings(),
        "retention.ms": "1000",
    }
    assert {name for name, config in found.items() if config.config_source == ON_THE_TOPIC} == {"retention.ms"}
    assert {config.config_source for config in found.values()} == {ON_THE_TOPIC, DEFAULT}
    assert not any(config.is_sensitive for config in found.values())
    assert found["retention.ms"].config_type == (Type.LONG if version >= 3 else 0)
    assert {name for name, config in found.items() if config.read_only} == {"tagwire.record.dialect"}


def test_synonyms_tell_what_a_value_would_be_otherwise(wire, topic):
    found = configs(wire, topic, include_synonyms=True)
    assert [(s.name, s.value, s.source) for s in found["retention.ms"].synonyms] == [
        ("retention.ms", "1000", ON_THE_TOPIC),
        ("log.retention.ms", "604800000", DEFAULT),
    ]
    assert [(s.name, s.value, s.source) for s in found["max.message.bytes"].synonyms] == [
        ("message.max.bytes", "1048588", DEFAULT)
    ]
    assert all(config.synonyms == [] for config in configs(wire, topic).values())


def test_documentation_is_told_when_it_is_asked_for(wire, topic):
    assert all(config.documentation is None for config in configs(wire, topic).values())
    assert all(config.documentation for config in configs(wire, topic, include_documentation=True).values())


@pytest.mark.parametrize(("keys", "count"), [(["retention.ms", "no.such"], 1), ([], len(TOPIC_CONFIGS)), (None, 34)])
def test_some_configurations_can_be_asked_for(wire, topic, keys, count):
    assert len(configs(wire, topic, keys=keys)) == count


def test_the_broker_tells_how_it_was_started(tmp_path, connect):
    with Broker(tmp_path / "data", num_partitions=3, idle_timeout_s=5.0) as broker:
        wire = connect(broker.bootstrap)
        found = configs(wire, "1", kind=BROKER, include_synonyms=True)
        assert all(config.read_only for config in found.values())
        told = {name: (config.value, config.config_source) for name, config in found.items()}
        assert told["num.partitions"] == ("3", STATIC)
        assert told["connections.max.idle.ms"] == ("5000", STATIC)
        assert told["auto.create.topics.enable"] == ("true", DEFAULT)
        assert told["log.retention.ms"] == ("604800000", DEFAULT)
        assert told["log.dirs"][0] == str(tmp_path / "data")
        assert [(s.value, s.source) for s in found["num.partitions"].synonyms] == [("3", STATIC), ("1", DEFAULT)]
        assert describe(wire, "", kind=BROKER).configs == []


@pytest.mark.parametrize(
    ("seconds", "told"), [(5, "5000"), (Fraction(1, 2), "500"), (float("inf"), str(2**63 - 1)), (1e300, str(2**63 - 1))]
)
def test_seconds_are_told_as_milliseconds_whatever_number_they_were_given_as(tmp_path, connect, seconds, told):
    with Broker(tmp_path / "data", idle_timeout_s=seconds, max_reauth_s=seconds) as broker:
        found = configs(connect(broker.bootstrap), "1", kind=BROKER)
        assert found["connections.max.idle.ms"].value == told
        assert found["connections.max.reauth.ms"].value == told


def test_no_secret_is_told(tmp_path, connect):
    listeners = [Listener(), Listener(sasl=("PLAIN",))]
    with Broker(tmp_path / "data", listeners=listeners, users={"alice": "wonderland"}) as broker:
        told = str(describe(connect(broker.bootstrap), "1", kind=BROKER))
        assert "node.id" in told
        assert "wonderland" not in told


NOT_THERE = [
    (TOPIC, "missing", Error.UNKNOWN_TOPIC_OR_PARTITION),
    (TOPIC, "../etc", Error.INVALID_TOPIC_EXCEPTION),
    (BROKER, "2", Error.INVALID_REQUEST),
    (8, "1", Error.INVALID_REQUEST),
    (0, "", Error.INVALID_REQUEST),
]


@pytest.mark.parametrize(("kind", "name", "error"), NOT_THERE)
def test_what_has_no_configurations_is_refused(wire, kind, name, error):
    answer = describe(wire, name, kind=kind)
    assert (answer.error_code, answer.configs) == (error, [])
    assert answer.error_message
    answer = alter(wire, name, ("retention.ms", SET, "1"), kind=kind)
    assert answer.error_code == error
    assert answer.error_message


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("retention.ms", SET, "x"), Error.INVALID_CONFIG),
        (("nonsense", DELETE, None), Error.INVALID_CONFIG),
        (("retention.ms", 9, "1"), Error.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_with_a_change_is_told_before_that_there_is_no_such_topic(wire, change, error):
    assert alter(wire, "missing", change).error_code == error


def test_topics_have_no_default_that_could_be_changed(wire):
    assert alter(wire, "", ("retention.ms", SET, "1")).error_code == Error.INVALID_REQUEST
    assert set_all(wire, "", retention_ms="1").error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize("version", range(2))
def test_every_version_sets_and_takes_back_and_has_effect(tmp_path, connect, make, version):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", retention_ms="1000")
        changes = [("max.message.bytes", SET, "100"), ("retention.ms", DELETE, None)]
        assert alter(wire, "t", *changes, version=version).error_code == 0
        assert wire.produce("t", make.records(b"v" * 200)).error_code == Error.MESSAGE_TOO_LARGE
    with Broker(tmp_path / "data") as broker:
        found = configs(connect(broker.bootstrap), "t")
        assert (found["max.message.bytes"].value, found["max.message.bytes"].config_source) == ("100", ON_THE_TOPIC)
        assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("604800000", DEFAULT)


def test_a_list_is_added_to_and_taken_from(wire, topic):
    assert alter(wire, topic, ("cleanup.policy", APPEND, "compact,delete")).error_code == 0
    assert configs(wire, topic)["cleanup.policy"].value == "delete,compact"
    assert alter(wire, topic, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    assert configs(wire, topic)["cleanup.policy"].value == "compact"


REFUSED = [
    ([("retention.ms", SET, "soon")], Error.INVALID_CONFIG),
    ([("no.such", SET, "1")], Error.INVALID_CONFIG),
    ([("no.such", DELETE, None)], Error.INVALID_CONFIG),
    ([("retention.ms", SET, None)], Error.INVALID_REQUEST),
    ([("retention.ms", APPEND, "1")], Error.INVALID_CONFIG),
    ([("no.such", SUBTRACT, "1")], Error.INVALID_CONFIG),
    ([("retention.ms", 4, "1")], Error.INVALID_REQUEST),
    ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], Error.INVALID_REQUEST),
    ([("segment.bytes", SET, "2000"), ("retention.ms", SET, "soon")], Error.INVALID_CONFIG),
]


@pytest.mark.parametrize(("changes", "error"), REFUSED)
def test_what_cannot_be_changed_is_refused_and_nothing_is(wire, topic, changes, error):
    before = configs(wire, topic)
    answer = alter(wire, topic, *changes)
    assert answer.error_code == error
    assert answer.error_message
    assert configs(wire, topic) == before


def test_a_list_is_taken_from_until_it_is_empty_and_added_to_again(wire, topic):
    assert alter(wire, topic, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    assert configs(wire, topic)["cleanup.policy"].value == ""
    assert alter(wire, topic, ("cleanup.policy", APPEND, "compact")).error_code == 0
    assert configs(wire, topic)["cleanup.policy"].value == "compact"


def test_a_configuration_that_the_broker_has_no_name_for_has_no_synonym_there(wire, topic):
    assert configs(wire, topic, include_synonyms=True)["remote.storage.enable"].synonyms == []


@pytest.mark.parametrize("kind", [16, 32])
def test_no_group_and_no_subscription_to_metrics_has_an_empty_name(wire, kind):
    answer = describe(wire, "", kind=kind)
    assert (answer.error_code, answer.configs) == (Error.INVALID_REQUEST, [])


@pytest.mark.parametrize("kind", [16, 32])
def test_groups_and_client_metrics_have_no_configurations(wire, kind):
    answer = describe(wire, "any", kind=kind)
    assert (answer.error_code, answer.configs) == (0, [])
    assert alter(wire, "any", ("interval.ms", SET, "1"), kind=kind).error_code == Error.INVALID_REQUEST


def test_a_setting_of_the_broker_may_be_set_to_what_it_is(wire):
    same = [("num.partitions", SET, "1"), ("log.retention.ms", DELETE, None), ("min.insync.replicas", SET, "1")]
    for name in ("1", ""):
        assert alter(wire, name, *same, kind=BROKER).error_code == 0
    assert alter(wire, "1", ("no.such", SET, "1"), kind=BROKER).error_code == Error.INVALID_CONFIG
    answer = alter(wire, "1", ("log.retention.ms", SET, "1"), kind=BROKER)
    assert (answer.error_code, "log.retention.ms is 604800000" in answer.error_message) == (Error.INVALID_REQUEST, True)


def test_the_brokers_own_topics_and_settings_stay_as_they_are(wire):
    assert alter(wire, "1", ("num.partitions", SET, "3"), kind=BROKER).error_code == Error.INVALID_REQUEST
    wire.ask(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
    answer = alter(wire, "__transaction_state", ("retention.ms", SET, "1"))
    assert answer.error_code == Error.INVALID_TOPIC_EXCEPTION


def test_validating_only_changes_nothing(wire, topic):
    assert alter(wire, topic, ("retention.ms", SET, "5"), validate_only=True).error_code == 0
    assert alter(wire, topic, ("retention.ms", SET, "x"), validate_only=True).error_code == Error.INVALID_CONFIG
    assert set_all(wire, topic, validate_only=True, segment_bytes="2000").error_code == 0
    assert configs(wire, topic)["retention.ms"].value == "1000"


def test_a_topic_named_twice_is_refused_and_the_others_are_altered(wire, topic):
    wire.create("other")
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="retention.ms", config_operation=SET, value="7")
    resources = [
        request.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[change])
        for name in (topic, "other", topic)
    ]
    answers = wire.ask(request(resources=resources), 1).responses
    assert [(a.resource_name, a.error_code) for a in answers] == [(topic, Error.INVALID_REQUEST), ("other", 0)]
    assert [configs(wire, name)["retention.ms"].value for name in (topic, "other")] == ["1000", "7"]


@pytest.mark.parametrize("version", range(3))
def test_every_version_sets_all_at_once_and_what_is_not_named_has_its_default(wire, topic, version):
    assert set_all(wire, topic, version, segment_bytes="2000").error_code == 0
    found = configs(wire, topic)
    given = {name: config.value for name, config in found.items() if config.config_source == ON_THE_TOPIC}
    assert given == {"segment.bytes": "2000"}
    assert set_all(wire, topic, version, segment_bytes=None).error_code == Error.INVALID_REQUEST

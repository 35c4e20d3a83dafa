"""The options of a consumer, as keywords and as Kafka's properties."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire.client.config import MAX_FETCH_BYTES, parse
from tagwire.client.consuming.consumer_settings import ConsumerSettings, settings_of
from tagwire.errors import ConfigError

START = {"bootstrap.servers": "kafka:9092"}


def settings(properties: dict[str, Any] | None = None, **options: Any) -> ConsumerSettings:
    found = parse({**START, **(properties or {})})
    return settings_of(found.fetch, found.consume, options)


def test_properties_say_how_a_consumer_is_a_member() -> None:
    found = settings(
        {
            "group.id": "g",
            "group.instance.id": "one",
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1000,
            "max.poll.interval.ms": 60_000,
            "max.poll.records": 7,
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor, cooperative-sticky",
            "exclude.internal.topics": "false",
        }
    )
    assert found.group is not None
    assert (found.group.group, found.group.instance_id) == ("g", "one")
    assert (found.group.session_seconds, found.group.heartbeat_seconds, found.group.max_poll_interval) == (10, 1, 60)
    assert found.group.assignors == ("range", "cooperative-sticky")
    assert not found.group.exclude_internal_topics
    assert found.consume.max_poll_records == 7


def test_a_consumer_commits_by_itself_where_it_has_a_group_and_is_not_told_otherwise() -> None:
    assert settings(group="g").auto_commit
    assert not settings().auto_commit
    assert not settings({"enable.auto.commit": "false", "group.id": "g"}).auto_commit
    assert not settings({"auto.commit.enable": "false"}, group="g").auto_commit  # librdkafka's name
    with pytest.raises(ConfigError, match="without a group has nowhere to commit"):
        settings(auto_commit=True)


def test_a_consumer_goes_on_at_the_end_unless_it_is_told_otherwise_and_knows_the_words_of_librdkafka() -> None:
    assert settings().consume.offset_reset == "latest"
    assert settings({"auto.offset.reset": "earliest"}).consume.offset_reset == "earliest"
    assert settings({"auto.offset.reset": "smallest"}).consume.offset_reset == "earliest"
    assert settings({"auto.offset.reset": "error"}).consume.offset_reset == "none"
    assert settings({"auto.offset.reset": "earliest"}, offset_reset="none").consume.offset_reset == "none"


def test_a_property_for_consumers_changes_nothing_of_a_reader() -> None:
    assert parse({**START, "auto.offset.reset": "earliest"}).fetch.offset_reset == "none"


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"group.protocol": "share"}, "group.protocol=share: allowed is classic or consumer"),
        ({"auto.offset.reset": "first"}, "auto.offset.reset=first: allowed is none, earliest"),
        ({"max.poll.records": 0}, "max.poll.records=0: allowed is a whole number from 1"),
        ({"enable.auto.commit": "yes"}, "enable.auto.commit=yes: allowed is true or false"),
    ],
)
def test_a_wrong_property_is_refused_by_its_name(properties: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(properties)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grupo": "g"}, "grupo: no such option; group is one"),
        ({"max_poll_records": 0}, "max_poll_records=0: needs a number from 1"),
        ({"max_poll_records": 1.5}, r"max_poll_records=1\.5: needs a whole number"),
        ({"max_wait_ms": 0.5}, r"max_wait_ms=0\.5: needs a whole number"),
        ({"batch_rows": 2.5}, r"batch_rows=2\.5: needs a whole number"),
        ({"auto_commit": "yes", "group": "g"}, "auto_commit: needs True or False"),
        ({"offset_reset": "first"}, "offset_reset=first: allowed is none, earliest"),
        (
            {"interceptors": print},
            "interceptors: needs a list of functions of a record, not builtin_function_or_method",
        ),
        ({"assignors": 7, "group": "g"}, "assignors=7: allowed is a name"),
        ({"protocol": "consumer", "session_timeout": 9, "group": "g"}, "session.timeout.ms: cannot be set with"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(**options)


def test_numbers_with_a_point_may_be_whole_ones_and_one_without_an_end_is_the_highest() -> None:
    found = settings(max_poll_records=1e2, max_bytes=1e6, max_partition_bytes=float("inf"), batch_rows=1e3)
    assert (
        repr((found.consume.max_poll_records, found.fetch.max_bytes, found.decoding.batch_rows))
        == "(100, 1000000, 1000)"
    )
    assert found.fetch.max_partition_bytes == MAX_FETCH_BYTES

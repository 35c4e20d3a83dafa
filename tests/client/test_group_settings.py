"""The settings of a member of a group, and those that belong to one of the two protocols alone."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"group": ""}, "group.id"),
        ({"protocol": "share"}, "group.protocol"),
        ({"instance_id": ""}, "group.instance.id"),
        ({"instance_id": ".."}, "group.instance.id"),
        ({"instance_id": "a b"}, "group.instance.id"),
        ({"instance_id": "a" * 250}, "group.instance.id"),
        ({"remote_assignor": "uniform"}, "group.remote.assignor"),
        ({"assignors": ()}, "partition.assignment.strategy"),
        ({"assignors": ("range", "rnage")}, "partition.assignment.strategy"),
        ({"session_timeout": 3.0, "heartbeat_interval": 3.0}, "heartbeat.interval.ms"),
        ({"max_poll_interval": 0.0}, "max.poll.interval.ms"),
        ({"session_timeout": -1.0}, "session.timeout.ms"),
        ({"metadata_max_age": float("inf")}, "metadata.max.age.ms"),
        ({"metadata_max_age": -0.001}, "metadata.max.age.ms"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_kafka_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=f"^{named}: "):
        GroupSettings(**{"group": "g", **settings})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"session_timeout": 10.0}, "session.timeout.ms"),
        ({"heartbeat_interval": 1.0}, "heartbeat.interval.ms"),
        ({"assignors": ("range",)}, "partition.assignment.strategy"),
    ],
)
def test_what_the_broker_decides_in_the_new_protocol_cannot_be_set(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=f"^{named}: cannot be set with group.protocol=consumer"):
        GroupSettings("g", "consumer", **settings)
    GroupSettings("g", "classic", **settings)


def test_what_nobody_set_is_as_kafkas_client_has_it() -> None:
    settings = GroupSettings("g")
    assert (settings.session_seconds, settings.heartbeat_seconds, settings.max_poll_interval) == (45.0, 3.0, 300.0)
    assert settings.assignor_names == ("range", "cooperative-sticky")

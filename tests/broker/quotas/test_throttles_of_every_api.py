"""Every API that is served tells a throttled client for how long, in its oldest and newest version, and nobody else."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker, clock
from tagwire.rpc import api_name
from tagwire.spec.api_keys import ApiKey

from .test_client_quotas import alter

# They log a client in; Kafka does not measure them, either.
NOT_MEASURED = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.fixture
def standing(monkeypatch):
    """The clock of quotas stands still."""
    now = clock.monotonic_ms()
    monkeypatch.setattr(clock, "monotonic_ms", lambda: now)


def answered(connect, broker, client_id, key, version):
    """What a connection of its own is answered to a request without anything in it."""
    request = getattr(messages, f"{api_name(key)}Request")()
    if key == ApiKey.PRODUCE:
        request.acks = -1
    wire = connect(broker.bootstrap, client_id=client_id)
    try:
        return wire.ask(request, version)
    finally:
        wire.close()


def test_every_api_tells_a_throttled_client_for_how_long_and_no_other(connect, standing):
    with Broker(authorizer="StandardAuthorizer", super_users="User:ANONYMOUS") as broker:
        admin = connect(broker.bootstrap, client_id="admin")
        served = {
            entry.api_key: (entry.min_version, entry.max_version)
            for entry in admin.ask(messages.ApiVersionsRequest(), 2).api_keys
            if entry.api_key not in NOT_MEASURED
        }
        assert alter(admin, ({"client-id": "greedy"}, {"request_percentage": 0.000001})) == [0]
        wrong, told = [], 0
        for key, (lowest, highest) in served.items():
            for version in {lowest, highest}:
                throttled = answered(connect, broker, "greedy", key, version)
                fine = answered(connect, broker, "modest", key, version)
                if "throttleTimeMs" not in throttled.to_json(version):
                    continue
                told += 1
                if (throttled.throttle_time_ms, fine.throttle_time_ms) != (1000, 0):
                    wrong.append((api_name(key), version, throttled.throttle_time_ms, fine.throttle_time_ms))
        assert wrong == []
        assert told > 60

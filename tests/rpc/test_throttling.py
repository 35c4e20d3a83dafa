"""Who pauses when a broker throttles: the broker in old versions, the client from KIP-219 on."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.rpc import pause_after


@pytest.mark.parametrize(
    ("api", "version", "seconds"),
    [
        (0, 5, 0.0),
        (0, 6, 1.5),
        (1, 7, 0.0),
        (1, 8, 1.5),
        (3, 5, 0.0),
        (3, 6, 1.5),
        (18, 1, 0.0),
        (18, 2, 1.5),
        (22, 0, 0.0),
        (22, 1, 1.5),
        (60, 0, 1.5),
    ],
)
def test_the_client_pauses_from_the_version_on_in_which_brokers_do_not(api: int, version: int, seconds: float) -> None:
    assert pause_after(api, version, messages.response(api)(throttle_time_ms=1500)) == seconds


def test_an_answer_that_asks_for_nothing_costs_nothing() -> None:
    assert pause_after(1, 12, messages.FetchResponse()) == 0.0
    assert pause_after(1, 12, messages.FetchResponse(throttle_time_ms=-5)) == 0.0
    assert pause_after(36, 2, messages.SaslAuthenticateResponse()) == 0.0

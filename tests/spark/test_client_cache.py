"""Clients and producers kept between tasks: one for each set of properties, whoever takes turns with them."""

from __future__ import annotations

import pytest

from tagwire.broker import Broker
from tagwire.errors import EncodeError
from tagwire.spark.sink import client_cache
from tagwire.spark.sink.client_cache import cached_client, cached_producer


@pytest.fixture
def properties(monkeypatch):
    kept: dict = {}
    monkeypatch.setattr(client_cache, "_clients", kept)
    monkeypatch.setattr(client_cache, "_producers", kept)
    with Broker() as broker:
        yield {"bootstrap.servers": broker.bootstrap}
    for each in kept.values():
        each.close()


@pytest.mark.parametrize("cached", [cached_client, cached_producer])
def test_the_same_one_is_given_again_and_a_failed_one_is_not(properties, cached):
    with cached(properties) as first:
        pass
    with pytest.raises(ZeroDivisionError), cached(properties) as again:
        1 / 0  # noqa: B018
    with cached(properties) as new:
        pass
    assert again is first
    assert new is not first


@pytest.mark.parametrize("cached", [cached_client, cached_producer])
def test_of_two_that_were_in_use_at_once_one_is_kept_and_the_other_closed(properties, cached, monkeypatch):
    closed = []
    with monkeypatch.context() as patched, cached(properties) as first:
        patched.setattr(type(first), "close", lambda self: closed.append(self))
        with cached(properties) as second:
            pass
    first.close()
    assert closed == [first]
    with cached(properties) as kept:
        assert kept is second


def test_what_ends_a_write_is_told_and_not_what_was_still_to_be_sent(properties):
    def write():
        with cached_producer({**properties, "linger.ms": "60000"}) as producer:
            producer.send("t", b"v")
            raise EncodeError("the next row cannot be written")

    with pytest.raises(EncodeError, match="the next row"):
        write()

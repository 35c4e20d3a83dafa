"""Marked versions on a real connection: served and advertised by a broker, chosen by a client as their marks say."""

from __future__ import annotations

import json
import logging

import pytest

from tagwire import messages
from tagwire.client import Client
from tagwire.errors import UnsupportedVersionError
from tagwire.rpc import api_of

KEY = 9000


def foo(**marks):
    document = {"apiKey": KEY, "validVersions": "0-2", "flexibleVersions": "none"}
    fields = [{"name": "Version", "type": "int16", "versions": "0+"}]
    request = document | {"type": "request", "name": "FooRequest", "fields": []} | marks
    return api_of(
        json.dumps(request), json.dumps(document | {"type": "response", "name": "FooResponse", "fields": fields})
    )


@pytest.fixture
def serve(broker):
    def serving(**marks):
        api = foo(**marks)
        broker.register(api, lambda call: api.response(version=call.version))
        return api

    return serving


def test_a_marked_version_is_advertised_and_served(broker, serve):
    api = serve(deprecatedVersions="0", doNotUseVersions={"1": "commits to the wrong partition"})
    with Client(broker.bootstrap, apis=api) as client:
        assert client.versions()[KEY] == (0, 2)
        assert [client.request(api.request(), version=version).version for version in (0, 1, 2)] == [0, 1, 2]


def test_a_client_takes_a_version_that_is_not_marked_where_there_is_one(broker, serve, caplog):
    api = serve(deprecatedVersions="0", doNotUseVersions={"2": "commits to the wrong partition"})
    with Client(broker.bootstrap, apis=api) as client, caplog.at_level(logging.WARNING, "tagwire.client"):
        assert client.request(api.request()).version == 1
    assert caplog.messages == []


def test_a_deprecated_version_is_told_once_in_the_log_for_each_api_and_broker(broker, serve, caplog):
    api = serve(deprecatedVersions="0-1", doNotUseVersions={"2": "commits to the wrong partition"})
    with caplog.at_level(logging.WARNING, "tagwire.client"), Client(broker.bootstrap, apis=api) as client:
        for _ in range(3):
            assert client.request(api.request()).version == 1
            client.close()  # it connects anew
    (line,) = caplog.messages
    assert line.endswith(": API 9000 1 is deprecated, and nothing newer is shared")


def test_a_client_sends_nothing_where_only_versions_not_to_be_used_are_shared(broker, serve):
    api = serve(doNotUseVersions={"0-2": "commits to the wrong partition"})
    with Client(broker.bootstrap, apis=api) as client:
        with pytest.raises(UnsupportedVersionError, match="0-2 must not be used: commits to the wrong partition"):
            client.request(api.request())
        assert client.request(messages.MetadataRequest(topics=None)).brokers
    assert broker.requests.count(KEY) == 0

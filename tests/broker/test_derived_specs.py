"""Specs that `tagwire spec derive` wrote, on real connections: a trace id there and back, beside old peers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tagwire import messages
from tagwire.broker import Broker
from tagwire.cli.spec import app
from tagwire.client import Client
from tagwire.rpc import api_of
from tagwire.spec import catalog

REQUEST = """
{ "apiKey": 9000, "type": "request", "name": "FooRequest", "validVersions": "0-3", "flexibleVersions": "none",
  "fields": [ { "name": "Count", "type": "int32", "versions": "0+" } ] }
"""
RESPONSE = """
{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "0-3", "flexibleVersions": "none",
  "fields": [ { "name": "Doubled", "type": "int32", "versions": "0+" } ] }
"""
OLD = api_of(REQUEST, RESPONSE)


@pytest.fixture(params=["optional", "tagged"])
def new(request, tmp_path: Path):
    """The API as derived, with a trace id, in each dialect."""
    return derived(tmp_path, {"FooRequest": REQUEST, "FooResponse": RESPONSE}, "--dialect", request.param)


def derived(folder: Path, specs: dict[str, str], *options: str):
    before, after = folder / "specs", folder / "next"
    before.mkdir()
    for name, text in specs.items():
        (before / f"{name}.json").write_text(text, encoding="utf-8")
    ran = CliRunner().invoke(app, ["derive", str(before), "--to", str(after), "--field", "TraceId:string", *options])
    assert ran.exit_code == 0, ran.output
    return api_of(*(after / f"{name}.json" for name in specs))


def serve(broker, api, seen):
    def answer(call):
        trace = getattr(call.request, "trace_id", None)
        seen.append((call.version, trace))
        more = {} if trace is None else {"trace_id": f"{trace}/1"}
        return api.response(doubled=call.request.count * 2, **more)

    broker.register(api, answer)


def test_a_trace_id_travels_both_ways_in_the_new_version_and_old_peers_go_on_as_before(new, broker):
    seen: list[tuple[int, str | None]] = []
    serve(broker, new, seen)
    with Client(broker.bootstrap, apis=new) as client:
        told = client.request(new.request(count=3, trace_id="01J2"))
        assert (told.doubled, told.trace_id) == (6, "01J2/1")
        assert client.request(new.request(count=4)).trace_id is None
        assert client.request(new.request(count=5), version=3).doubled == 10
    with Client(broker.bootstrap, apis=OLD) as client:
        assert client.request(OLD.request(count=6)).doubled == 12
    assert seen == [(4, "01J2"), (4, None), (3, None), (3, None)]


def test_a_client_of_the_new_version_speaks_the_old_one_to_an_old_broker(new, broker):
    seen: list[tuple[int, str | None]] = []
    serve(broker, OLD, seen)
    with Client(broker.bootstrap, apis=new) as client:
        assert client.request(new.request(count=3)).doubled == 6
    assert seen == [(3, None)]


def test_a_trace_id_on_a_message_of_kafkas_needs_no_new_version_and_who_does_not_know_it_passes_over_it(tmp_path):
    specs = {name: catalog.path(name).read_text(encoding="utf-8") for name in ("MetadataRequest", "MetadataResponse")}
    metadata = derived(tmp_path, specs)
    assert metadata.versions == (0, 13)
    with Broker() as unaware, Client(unaware.bootstrap, apis=metadata) as client:
        told = client.request(metadata.request(topics=None, trace_id="01J2"))
        assert (len(told.brokers), told.trace_id) == (1, None)
    with Broker() as aware:
        traces = []
        aware.register(
            metadata,
            lambda call: traces.append(call.request.trace_id) or metadata.response(trace_id="heard", brokers=[]),
        )
        with Client(aware.bootstrap, apis=metadata) as client:
            assert client.request(metadata.request(topics=None, trace_id="01J2"), version=12).trace_id == "heard"
            assert client.request(metadata.request(topics=None, trace_id="01J2"), version=8).trace_id is None
        with Client(aware.bootstrap) as plain:
            assert plain.request(messages.MetadataRequest(topics=None)).unknown_tags == {0: b"\x06heard"}
        assert traces == ["01J2", None, None]

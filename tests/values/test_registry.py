"""A schema registry is asked, believed as far as it may be, and never told more than it needs to know."""

from __future__ import annotations

import json
import os
import pickle
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagwire.errors import ConfigError, SchemaRegistryError, SchemaRegistryUnavailableError
from tagwire.values.registry import SchemaRegistry, registry_settings, shared_registry
from tagwire.values.schemas import Reference, Schema

from ..certificates import Certificates
from .registry_server import Answer, RegistryServer, Request, for_a_while, registry_server

SECRET = "pen,c=il-hunter2"
FAST = {"retries.wait.ms": "1", "retries.max.wait.ms": "5", "request.timeout.ms": "20000"}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


def client(*urls: str, **more: str) -> SchemaRegistry:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return SchemaRegistry(registry_settings({"schema.registry.url": ",".join(urls), **FAST, **named}))


def test_subjects_versions_and_schemas_are_found(server: RegistryServer) -> None:
    base = server.add("base", '"int"')
    server.add("t-value", '{"a": 1}', "JSON")
    last = server.add("t-value", '{"a": 2}', "JSON", [("other", "base", 1)])
    registry = client(server.url)
    assert registry.subjects() == ["base", "t-value"]
    assert registry.versions("t-value") == [1, 2]
    found = registry.latest("t-value")
    assert (found.schema_id, found.version, found.subject) == (last, 2, "t-value")
    assert found.guid == server.guid(last)
    assert found.schema == Schema('{"a": 2}', "JSON", (("other", Schema('"int"')),))
    assert found.references == (Reference("other", "base", 1),)
    assert registry.by_id(base).schema == registry.by_guid(server.guid(base)).schema == Schema('"int"')
    assert registry.version("t-value", 1).schema.text == '{"a": 1}'
    assert registry.compatibility_level("t-value") == "BACKWARD"


def test_a_schema_is_read_whose_reference_was_deleted_with_it(server: RegistryServer) -> None:
    server.add("base", '"int"')
    schema_id = server.add("t-value", '{"a": 2}', "JSON", [("other", "base", 1)])
    server.deleted = {"base", "t-value"}
    registry = client(server.url)
    assert registry.by_id(schema_id).schema.references == (("other", Schema('"int"')),)
    with pytest.raises(SchemaRegistryError, match="Subject 't-value' not found"):
        registry.latest("t-value")


def test_a_subject_may_have_any_name(server: RegistryServer) -> None:
    registry = client(server.url)
    for name in ("a/b c?d=e#f%20", "..", ".", ":.context:t-value", "ä"):
        server.add(name, '"int"')
        assert registry.latest(name).subject == name
    with pytest.raises(ConfigError, match="no Unicode"):
        registry.latest("\udcff")


def test_a_schema_is_registered_looked_up_and_checked(server: RegistryServer) -> None:
    registry = client(server.url)
    schema = Schema('{"a": 1}', "JSON")
    found = registry.register("t-value", schema)
    assert registry.lookup("t-value", schema).version == 1
    assert registry.lookup("t-value", schema).schema_id == found.schema_id
    assert registry.incompatibilities("t-value", schema) == []
    server.compatible = ["a: was \x1b[31mremoved"]
    assert registry.incompatibilities("t-value", schema) == ["a: was \\x1b[31mremoved"]
    with pytest.raises(SchemaRegistryError) as error:
        registry.lookup("t-value", Schema('"int"'))
    assert error.value.not_found
    assert error.value.error_code == 40403
    assert pickle.loads(pickle.dumps(error.value)).not_found


def test_an_id_is_asked_for_once_in_a_process_also_one_that_is_not_there(server: RegistryServer) -> None:
    one = server.add("t-value", '"int"')
    settings = registry_settings({"url": server.url, **FAST})
    for _ in range(3):
        registry = pickle.loads(pickle.dumps(shared_registry(settings)))
        assert registry is shared_registry(settings)
        registry.by_id(one)
        with pytest.raises(SchemaRegistryError):
            registry.by_id(77)
    assert server.asked() == [f"/schemas/ids/{one}", "/schemas/ids/77"]


def test_what_is_kept_is_bounded(server: RegistryServer) -> None:
    ids = [server.add("t-value", f'{{"a": {number}}}', "JSON") for number in range(6)]
    registry = client(server.url, cache_capacity="3")
    for schema_id in [*ids, ids[-1], ids[0]]:
        registry.by_id(schema_id)
    assert len(server.asked("/schemas/ids/")) == 7
    for number in range(1000, 1020):
        with pytest.raises(SchemaRegistryError):
            registry.by_id(number)
    with pytest.raises(SchemaRegistryError):
        registry.by_id(1000)
    assert server.asked("/schemas/ids/1000") == ["/schemas/ids/1000"] * 2


def test_another_node_is_asked_where_one_fails(server: RegistryServer) -> None:
    one = server.add("t-value", '"int"')
    with registry_server() as broken:
        broken.misbehave = lambda request: Answer(500, b"<html>oops</html>")
        with registry_server() as gone:
            pass
        registry = client(gone.url, broken.url, server.url, max_retries="0")
        assert registry.by_id(one).schema_id == one
        assert registry.latest("t-value").schema_id == one
        assert len(broken.requests) == 1  # the node that answered goes on to be asked


def test_every_node_is_asked_also_where_another_thread_has_found_the_next_one_meanwhile(server: RegistryServer) -> None:
    one = server.add("t-value", '"int"')
    with registry_server() as broken:
        registry = client(broken.url, server.url, max_retries="0")

        def fail(request: Request) -> Answer:
            if request.path.endswith("/latest"):
                other = threading.Thread(target=registry.by_id, args=(one,))
                other.start()
                other.join()
            return Answer(503)

        broken.misbehave = fail
        assert registry.latest("t-value").schema_id == one


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_as_often_as_was_said(server: RegistryServer, status: int) -> None:
    one = server.add("t-value", '"int"')
    registry = client(server.url, max_retries="2")
    server.misbehave = for_a_while(2, status)
    assert registry.by_id(one).schema_id == one
    server.misbehave = for_a_while(3, status)
    with pytest.raises(SchemaRegistryUnavailableError, match=f"HTTP {status}") as error:
        registry.latest("t-value")
    assert error.value.status == status
    assert not error.value.not_found


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_not_tried_again(server: RegistryServer, status: int) -> None:
    server.misbehave = for_a_while(1, status)
    with pytest.raises(SchemaRegistryError, match=f"HTTP {status}") as error:
        client(server.url).latest("t-value")
    assert type(error.value) is SchemaRegistryError
    assert len(server.requests) == 1
    assert not error.value.not_found  # a 404 without a code of the registry's own is about the path


def test_a_retry_after_is_kept_and_bounded(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    here, pause = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:  # of all threads
        pauses.append(seconds) if threading.get_ident() == here else pause(seconds)

    monkeypatch.setattr("tagwire.values.registry.transport.time.sleep", sleep)
    server.add("t-value", '"int"')
    server.misbehave = for_a_while(1, 429, {"Retry-After": "3"})
    client(server.url, retries_max_wait_ms="4000").latest("t-value")
    server.misbehave = for_a_while(1, 429, {"Retry-After": "100000"})
    client(server.url, retries_max_wait_ms="4000").latest("t-value")
    server.misbehave = for_a_while(1, 429, {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"})
    client(server.url, retries_max_wait_ms="4000").latest("t-value")
    assert pauses[:2] == [3.0, 4.0]
    assert pauses[2] < 1


@pytest.mark.parametrize(
    ("properties", "header"),
    [
        ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "al:b:c"}, "Basic YWw6Yjpj"),
        ({"schema.registry.basic.auth.user.info": "al:b:c"}, "Basic YWw6Yjpj"),
        ({"basic.auth.user.info": "al:pä"}, "Basic YWw6cMOk"),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "al", "sasl.password": "b:c"},
            "Basic YWw6Yjpj",
        ),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t0k"}, "Bearer t0k"),
    ],
)
def test_credentials_are_those_of_confluents_clients(
    server: RegistryServer, properties: dict[str, str], header: str
) -> None:
    server.credentials = header
    server.add("t-value", '"int"')
    registry = SchemaRegistry(registry_settings({"schema.registry.url": server.url, **FAST, **properties}))
    assert registry.subjects() == ["t-value"]


def test_credentials_may_stand_in_the_url_and_are_told_nowhere(server: RegistryServer) -> None:
    server.credentials = "Basic YWw6aHVudGVyMg=="
    registry = client(server.url.replace("://", "://al:hunter2@"), max_retries="0")
    assert registry.subjects() == []
    server.stop()
    with pytest.raises(SchemaRegistryError) as error:
        registry.subjects()
    for text in (repr(registry), repr(registry.settings), str(error.value), repr(error.value)):
        assert "hunter2" not in text


def test_a_bearers_cluster_is_told_beside_the_token(server: RegistryServer) -> None:
    more = {"bearer_auth_token": "t0k", "bearer_auth_logical_cluster": "lsrc-1", "bearer_auth_identity_pool_id": "p-1"}
    client(server.url, **more).subjects()
    told = {name.lower(): value for name, value in server.requests[0].headers.items()}
    assert (told["target-sr-cluster"], told["confluent-identity-pool-id"]) == ("lsrc-1", "p-1")


def test_wrong_credentials_are_an_error_that_names_the_options(server: RegistryServer) -> None:
    server.credentials = "Basic other"
    with pytest.raises(SchemaRegistryError, match=r"HTTP 401.*basic\.auth\.user\.info") as error:
        client(server.url, basic_auth_user_info=f"al:{SECRET}").subjects()
    assert SECRET not in str(error.value)


def test_a_redirect_is_followed_and_tells_another_host_no_secret(server: RegistryServer) -> None:
    server.add("t-value", '"int"')
    with registry_server() as first:
        first.misbehave = lambda request: Answer(307, b"", {"Location": server.url + request.path})
        registry = client(first.url, basic_auth_user_info=f"al:{SECRET}")
        assert registry.subjects() == ["t-value"]
        assert "Authorization" in first.requests[0].headers
        assert "Authorization" not in server.requests[0].headers
    server.misbehave = lambda request: (
        Answer(302, b"", {"Location": "/a" + request.path}) if len(server.requests) < 3 else Answer(200, b"[]")
    )
    assert client(server.url, basic_auth_user_info="al:b").subjects() == []
    assert "Authorization" in server.requests[-1].headers


@pytest.mark.parametrize("target", ["/again", "ftp://host/", "http://[::1", "http:///x", "//host:99999/", "\x1b[31m"])
def test_redirects_that_lead_nowhere_end(server: RegistryServer, target: str) -> None:
    server.misbehave = lambda request: Answer(302, b"", {"Location": target})
    with pytest.raises(SchemaRegistryError, match=r"redirects") as error:
        client(server.url, max_retries="0").subjects()
    assert "\x1b" not in str(error.value)
    assert len(server.requests) < 10


def test_what_is_posted_is_not_sent_elsewhere_as_something_else(server: RegistryServer) -> None:
    server.misbehave = lambda request: Answer(301, b"", {"Location": "/other"})
    with pytest.raises(SchemaRegistryError, match="redirects a POST"):
        client(server.url).register("t-value", Schema('"int"'))
    assert len(server.requests) == 1


def test_a_proxy_is_gone_through(server: RegistryServer) -> None:
    server.add("t-value", '"int"')
    registry = client("http://registry.invalid:8081", proxy=server.url.replace("://", f"://al:{SECRET}@"))
    assert registry.subjects() == ["t-value"]
    assert server.requests[0].path == "http://registry.invalid:8081/subjects"
    assert "proxy-authorization" in {name.lower() for name in server.requests[0].headers}
    assert SECRET not in repr(registry.settings)


@pytest.mark.parametrize("written", ["al:p%C3%A4%E2%82%ACss", "al:pä€ss"])
def test_a_proxy_s_credentials_may_have_any_letter(server: RegistryServer, written: str) -> None:
    registry = client("http://registry.invalid:8081", proxy=server.url.replace("://", f"://{written}@"))
    assert registry.subjects() == []
    sent = {name.lower(): value for name, value in server.requests[0].headers.items()}["proxy-authorization"]
    assert b64decode(sent.removeprefix("Basic ")).decode() == "al:pä€ss"


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_tls_believes_the_authority_that_is_given_and_no_other(certificates: Certificates) -> None:
    with registry_server(certificates.server(mutual=True)) as server:
        own = {"ssl.ca.location": str(certificates.authority), "ssl.certificate.location": str(certificates.client)}
        java = {
            "schema.registry.ssl.truststore.location": str(certificates.authority),
            "schema.registry.ssl.truststore.type": "PEM",
            "schema.registry.ssl.keystore.location": str(certificates.client),
            "schema.registry.ssl.keystore.type": "PEM",
        }
        text = {"ssl.truststore.certificates": certificates.authority.read_text(), **own}
        del text["ssl.ca.location"]
        for properties in (own, java, text):
            assert SchemaRegistry(registry_settings({"url": server.url, **FAST, **properties})).subjects() == []
        wrong = {**own, "ssl.ca.location": str(certificates.client)}
        with pytest.raises(SchemaRegistryError, match="not trusted"):
            SchemaRegistry(registry_settings({"url": server.url, "max.retries": "0", **wrong})).subjects()
        unchecked = {**own, "ssl.ca.location": "", "enable.ssl.certificate.verification": "false"}
        assert SchemaRegistry(registry_settings({"url": server.url, **FAST, **unchecked})).subjects() == []
    with registry_server(certificates.server(certificates.elsewhere)) as server:
        known = {"url": server.url, "max.retries": "0", "ssl.ca.location": str(certificates.authority)}
        with pytest.raises(SchemaRegistryError, match=r"not trusted.*mismatch"):
            SchemaRegistry(registry_settings(known)).subjects()
        known["ssl.endpoint.identification.algorithm"] = ""
        assert SchemaRegistry(registry_settings(known)).subjects() == []


def test_a_redirect_from_tls_takes_neither_to_plain_text_nor_the_clients_certificate(
    certificates: Certificates,
) -> None:
    own = {"ssl.ca.location": str(certificates.authority), "ssl.certificate.location": str(certificates.client)}
    with registry_server(certificates.server(mutual=True)) as home, registry_server() as plain:
        registry = SchemaRegistry(registry_settings({"url": home.url, "max.retries": "0", **own}))
        home.misbehave = lambda request: Answer(307, b"", {"Location": plain.url + request.path})
        with pytest.raises(SchemaRegistryError, match="from https to http"):
            registry.subjects()
        assert not plain.requests
        with registry_server(certificates.server(mutual=True)) as other:
            home.misbehave = lambda request: Answer(307, b"", {"Location": other.url + request.path})
            with pytest.raises(SchemaRegistryError):
                registry.subjects()
            assert not other.requests


def test_certificates_that_cannot_be_read_are_an_error_of_their_option(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    for option in ("ssl.ca.location", "ssl.certificate.location"):
        for path in (rubbish, tmp_path / "none.pem"):
            with pytest.raises(ConfigError, match=option):
                client("https://127.0.0.1:1", **{option: str(path)})


def test_a_forked_process_has_connections_of_its_own(server: RegistryServer) -> None:
    server.add("t-value", '"int"')
    settings = registry_settings({"url": server.url, **FAST})
    parents = shared_registry(settings)
    parents.subjects()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            own = shared_registry(settings)
            os.write(writer, json.dumps([own is parents, *own.subjects()]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert json.loads(pipe.read()) == [False, "t-value"]
    os.waitpid(child, 0)
    assert shared_registry(settings).subjects() == ["t-value"]


def test_threads_share_a_registry(server: RegistryServer) -> None:
    ids = [server.add("t-value", f'{{"a": {number}}}', "JSON") for number in range(20)]
    registry = client(server.url, cache_capacity="5")
    wrong: list[object] = []

    def ask() -> None:
        for number, schema_id in enumerate(ids):
            if registry.by_id(schema_id).schema.text != f'{{"a": {number}}}':
                wrong.append(schema_id)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_schema_is_posted_as_registries_expect(server: RegistryServer) -> None:
    registry = client(server.url)
    registry.register("t-value", Schema('"int"'))
    registry.register("t-value", Schema("{}", "JSON"), [Reference("a", "b", 3)], normalize=True)
    avro, other = server.requests
    assert (avro.method, avro.path, avro.body) == ("POST", "/subjects/t-value/versions", {"schema": '"int"'})
    assert other.path == "/subjects/t-value/versions?normalize=true"
    named = [{"name": "a", "subject": "b", "version": 3}]
    assert other.body == {"schema": "{}", "schemaType": "JSON", "references": named}


def test_an_early_end_of_a_kept_connection_is_no_failure(server: RegistryServer) -> None:
    server.add("t-value", '"int"')
    registry = client(server.url, max_retries="0")

    def close_after(request: Request) -> Answer:
        return Answer(200, b"[]", {"Connection": "close"})

    server.misbehave = close_after
    for _ in range(3):
        assert registry.subjects() == []

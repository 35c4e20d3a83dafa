"""Client credentials over HTTP (KIP-768) against an endpoint that may say anything: tokens, and typed refusals."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from tagwire.client import ClientCredentials
from tagwire.errors import ConfigError, ConnectError, TokenError

from ..certificates import Certificates
from ..token_endpoint import CLIENT_ID, CLIENT_SECRET, Answer, TokenEndpoint, jwt

HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint().listening() as listening:
        yield listening


def credentials(endpoint: TokenEndpoint, **other: Any) -> ClientCredentials:
    return ClientCredentials(
        **{
            "token_endpoint_url": f"{endpoint.url}/token?tenant=hunter",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "retry_backoff_max": 0.05,
            **other,
        }
    )


def body(**fields: Any) -> Answer:
    return Answer(body=json.dumps(fields).encode())


def refused(endpoint: TokenEndpoint, *answers: Answer, kind: type[Exception] = TokenError, **options: Any) -> str:
    endpoint.answers.extend(answers)
    with pytest.raises(kind) as caught:
        credentials(endpoint, **options).token(time.time)
    said = str(caught.value)
    assert "hunter" not in said
    assert len(said) < 300
    assert f"token endpoint {endpoint.url}/token" in said
    return said


def test_a_token_is_asked_for_as_kip_768_has_it(endpoint: TokenEndpoint) -> None:
    endpoint.token()
    token = credentials(endpoint, scope="produce consume", extensions={"logicalCluster": "lkc-1"}).token(time.time)
    ((method, path, headers, form),) = endpoint.requests
    assert (method, path) == ("POST", "/token?tenant=hunter")
    assert parse_qs(form) == {"grant_type": ["client_credentials"], "scope": ["produce consume"]}
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == f"{CLIENT_ID}:{CLIENT_SECRET}"
    assert token.extensions == {"logicalCluster": "lkc-1"}
    assert token.expires_at == pytest.approx(time.time() + 3600, abs=5)


def test_an_opaque_token_lives_as_long_as_the_endpoint_says(endpoint: TokenEndpoint) -> None:
    endpoint.answers.append(body(access_token="opaque", expires_in=60))
    token = credentials(endpoint).token(lambda: 1000.0)
    assert (token.value, token.issued_at, token.expires_at) == ("opaque", 1000.0, 1060.0)


def test_a_token_that_was_created_is_taken_as_kafkas_clients_do(endpoint: TokenEndpoint) -> None:
    endpoint.answers.append(Answer(201, b'{"access_token":"opaque","expires_in":60}'))
    assert credentials(endpoint).token(lambda: 1000.0).value == "opaque"
    assert len(endpoint.requests) == 1


def test_over_tls_the_endpoint_has_to_be_vouched_for(certificates: Certificates) -> None:
    with TokenEndpoint().listening(certificates.server()) as endpoint:
        assert credentials(endpoint, cafile=certificates.authority).token(time.time).value
        assert "its certificate is not trusted" in refused(endpoint)
    with TokenEndpoint().listening(certificates.server(certificates.elsewhere)) as endpoint:
        assert "its certificate is not trusted" in refused(endpoint, cafile=certificates.authority)
        assert not endpoint.requests


def test_a_server_without_tls_is_told(endpoint: TokenEndpoint) -> None:
    endpoint.url = endpoint.url.replace("http:", "https:")
    assert "no TLS" in refused(endpoint, kind=ConnectError)


SAYS = [
    (Answer(200, b"<html>hunter</html>", HTML), "the response (text/html; charset=utf-8) is no JSON object"),
    (Answer(200, b"hunter"), "is no JSON object"),
    (Answer(200, b"[" * 100_000), "is no JSON object"),
    (Answer(200, b"\xff\xfehunter"), "is no JSON object"),
    (body(id_token="hunter"), "has no access_token"),
    (body(access_token=["hunter"]), "has no access_token"),
    (body(access_token=""), "the token is empty"),
    (body(access_token="hunter 2", expires_in=60), "characters that no bearer token has"),
    (body(access_token="h" * 1_000_000, expires_in=60), "the token has 1000000 characters; 524288 are the most"),
    (body(access_token="h" * 1_100_000, expires_in=60), "the response has more than 1048576 bytes"),
    (body(access_token="hunter"), "nothing tells when the token ends"),
    (body(access_token="hunter", expires_in=-5), "nothing tells when the token ends"),
    (body(access_token="hunter", expires_in=True), "nothing tells when the token ends"),
    (body(access_token="hunter.hunter.hunter", expires_in=60), "its claims are no JSON object"),
    (body(access_token="e.WzFd.e", expires_in=60), "its claims are no JSON object"),
    (body(access_token=jwt({"exp": "hunter"})), "the claim 'exp' of the token is no time"),
    (body(access_token=jwt({"exp": 1e300})), "the claim 'exp' of the token is no time"),
    (body(access_token=jwt({"exp": time.time() - 3600, "sub": "hunter"})), "the token expired "),
    (Answer(302, b"", {"Location": "http://hunter.invalid/"}), "redirects (302), which is not followed"),
    (Answer(307, b"", {"Location": "/elsewhere"}), "redirects (307), which is not followed"),
    (Answer(400, b'{"error":"invalid_scope"}'), "status 400 (invalid_scope)"),
    (Answer(401, b'{"error":"hunter 2","error_description":"hunter"}'), "status 401"),
    (Answer(403, b"<html>hunter", HTML), "status 403"),
]


@pytest.mark.parametrize(("answer", "says"), SAYS)
def test_what_is_no_token_is_refused_at_once_by_name(endpoint: TokenEndpoint, answer: Answer, says: str) -> None:
    assert says in refused(endpoint, answer)
    assert len(endpoint.requests) == 1


def test_a_token_for_another_audience_is_refused(endpoint: TokenEndpoint) -> None:
    said = refused(endpoint, body(access_token=jwt({"exp": 4e9, "aud": ["hunter"]})), expected_audience="kafka")
    assert "for another audience than 'kafka'" in said
    for audience in ("kafka", ["x", "kafka"]):
        endpoint.answers.append(body(access_token=jwt({"exp": 4e9, "aud": audience})))
        credentials(endpoint, expected_audience="kafka").token(time.time)


def test_clocks_may_differ_by_the_skew(endpoint: TokenEndpoint) -> None:
    answer = body(access_token=jwt({"exp": 1000, "iat": 940}))
    endpoint.answers.append(answer)
    assert credentials(endpoint).token(lambda: 1029.0).expires_at == 1029.0
    endpoint.answers.extend([answer, answer])
    with pytest.raises(TokenError, match="expired 30 s ago by this machine's clock; 30 s of clock skew are allowed"):
        credentials(endpoint).token(lambda: 1030.0)
    with pytest.raises(TokenError, match="expired"):
        credentials(endpoint, clock_skew=5).token(lambda: 1029.0)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_may_pass_is_tried_again_with_pauses_that_double(endpoint: TokenEndpoint, status: int) -> None:
    endpoint.answers.extend([Answer(status, b'{"error":"temporarily_unavailable"}')] * 3)
    pauses: list[float] = []
    told: list[str] = []
    given = credentials(endpoint, retry_backoff=0.1, retry_backoff_max=10.0)
    given.token(time.time, lambda error: told.append(str(error)), monotonic=lambda: sum(pauses), sleep=pauses.append)
    assert pauses == [0.1, 0.2, 0.4]
    assert told[0].endswith(f"status {status} (temporarily_unavailable)")


def test_attempts_end_when_their_time_is_up(endpoint: TokenEndpoint) -> None:
    endpoint.answers.extend([Answer(503)] * 20)
    pauses: list[float] = []
    with pytest.raises(ConnectError, match="status 503"):
        credentials(endpoint, retry_backoff=0.1, retry_backoff_max=10.0).token(
            time.time, monotonic=lambda: sum(pauses), sleep=pauses.append
        )
    assert len(endpoint.requests) == 7
    assert sum(pauses) < 10


@pytest.mark.parametrize("slow", [{"late": 30.0}, {"drip": 0.02}])
def test_a_slow_endpoint_is_given_up(endpoint: TokenEndpoint, slow: dict[str, float]) -> None:
    began = time.monotonic()
    said = refused(endpoint, Answer(200, b" " * 10_000, **slow), kind=ConnectError, read_timeout=0.2)
    assert said.endswith("timed out")
    assert time.monotonic() - began < 5


def test_nobody_at_the_address_is_told(endpoint: TokenEndpoint) -> None:
    endpoint.url = "http://127.0.0.1:1"
    assert "Connection refused" in refused(endpoint, kind=ConnectError)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"token_endpoint_url": "ftp://hunter/"}, "token_endpoint_url: needs http://HOST/PATH"),
    ({"token_endpoint_url": "http://[hunter"}, "token_endpoint_url: is no URL"),
    ({"token_endpoint_url": "http://h:99999/"}, "token_endpoint_url: is no URL"),
    ({"token_endpoint_url": "http://hunter 2/"}, "token_endpoint_url: is no URL"),
    ({"token_endpoint_url": "http://user:hunter@h/"}, "token_endpoint_url: holds credentials"),
    ({"client_id": "a:hunter"}, "client_id: has a colon"),
    ({"client_secret": ""}, "client_secret: needs text"),
    ({"client_secret": 5}, "client_secret: needs text"),
    ({"client_secret": "hunter\ud800"}, "client_secret: has half of a character"),
    ({"scope": 5}, "scope: needs text"),
    ({"scope": "hunter\ud800"}, "scope: has half of a character"),
    ({"extensions": {"auth": "hunter"}}, "extensions: no extension may be named 'auth'"),
    ({"read_timeout": 0}, "read_timeout=0: allowed is"),
    ({"retry_backoff": "hunter"}, "retry_backoff: needs a number"),
    ({"cafile": "hunter.pem"}, "cafile: has no effect with an endpoint of http"),
]


@pytest.mark.parametrize(("option", "says"), WRONG)
def test_a_wrong_option_is_refused_without_its_value(option: dict[str, Any], says: str) -> None:
    given = {"token_endpoint_url": "http://127.0.0.1/", "client_id": "a", "client_secret": "hunter2", **option}
    with pytest.raises(ConfigError) as caught:
        ClientCredentials(**given)
    assert says in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_no_repr_tells_the_secret(endpoint: TokenEndpoint) -> None:
    given = credentials(endpoint)
    token = given.token(time.time)
    assert given.name in repr(given)
    assert "hunter" not in repr(given)  # nor what the URL's query has
    assert token.value not in repr(token)

"""Credentials on the wire are in no recording, however a connection is cut into pieces; all else is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.capture import Losses, exchanged, observe, paths_of
from tagwire.capture.redaction import MAX_AWAITED, MAX_READ, Redaction
from tagwire.capture.tap import Files, Passed
from tagwire.cli import main
from tagwire.client import Client
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header

from .test_tap import tapped

PASSWORD = "hunter2-pen,c=il"
SECRET = b"s3cr3t-s3cr3t"


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def request(message: Any, version: int, correlation: int = 7) -> bytes:
    header = RequestHeader(message.api_key, version, correlation, "client")
    return framed(encode_request_header(header) + message.encode(version))


def response(message: Any, version: int, correlation: int = 7) -> bytes:
    return framed(encode_response_header(message.api_key, version, correlation) + message.encode(version))


def kept(data: bytes, *, by_client: bool = True, step: int = 1 << 20, redaction: Redaction | None = None) -> bytes:
    """What is kept of bytes that come `step` at a time."""
    redaction = redaction or Redaction()
    pieces = [redaction.passed(data[at : at + step], by_client=by_client) for at in range(0, len(data), step)]
    return b"".join(pieces) + redaction.ended(by_client=by_client)


def covered(data: bytes, *secrets: bytes) -> bytes:
    for secret in secrets:
        assert secret in data
        data = data.replace(secret, b"*" * len(secret))
    return data


SCRAM = messages.AlterUserScramCredentialsRequest
CHANGED = messages.IncrementalAlterConfigsRequest
PASSWORD_OF_A_KEY = CHANGED.AlterConfigsResource(
    resource_type=4,
    resource_name="1",
    configs=[
        CHANGED.AlterableConfig(name="ssl.key.password", value=SECRET.decode()),
        CHANGED.AlterableConfig(name="retention.ms", value="12345"),
        CHANGED.AlterableConfig(name="sasl.jaas.config", value=None),
    ],
)
REQUESTS = [
    (messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + SECRET), (0, 1, 2)),
    (messages.SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=" + SECRET), (0, 2)),
    (messages.SaslAuthenticateRequest(auth_bytes=SECRET), (0, 2)),
    (
        SCRAM(
            upsertions=[
                SCRAM.ScramCredentialUpsertion(
                    name="alice", mechanism=1, iterations=4096, salt=SECRET, salted_password=SECRET
                )
            ]
        ),
        (0,),
    ),
    (CHANGED(resources=[PASSWORD_OF_A_KEY]), (0, 1)),
    (messages.RenewDelegationTokenRequest(hmac=SECRET), (1, 2)),
    (messages.ExpireDelegationTokenRequest(hmac=SECRET), (1, 2)),
]
ANSWERS = [
    (messages.SaslAuthenticateRequest(), messages.SaslAuthenticateResponse(auth_bytes=SECRET), (0, 1, 2)),
    (messages.CreateDelegationTokenRequest(), messages.CreateDelegationTokenResponse(hmac=SECRET), (1, 2, 3)),
    (
        messages.DescribeConfigsRequest(),
        messages.DescribeConfigsResponse(
            results=[
                messages.DescribeConfigsResponse.DescribeConfigsResult(
                    configs=[
                        messages.DescribeConfigsResponse.DescribeConfigsResourceResult(
                            name="plain", value=SECRET.decode(), is_sensitive=True
                        )
                    ]
                )
            ]
        ),
        (1, 4),
    ),
    (
        messages.DescribeConfigsRequest(),
        messages.DescribeConfigsResponse(
            results=[
                messages.DescribeConfigsResponse.DescribeConfigsResult(
                    configs=[
                        messages.DescribeConfigsResponse.DescribeConfigsResourceResult(
                            name="plain",
                            is_sensitive=True,
                            synonyms=[
                                messages.DescribeConfigsResponse.DescribeConfigsSynonym(
                                    name="plainer", value=SECRET.decode()
                                )
                            ],
                        )
                    ]
                )
            ]
        ),
        (1, 4),
    ),
]


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
@pytest.mark.parametrize(("message", "versions"), REQUESTS, ids=lambda one: type(one).__name__)
def test_of_a_request_all_but_its_secrets_is_kept(message: Any, versions: tuple[int, ...], step: int) -> None:
    for version in versions:
        others = request(messages.MetadataRequest(topics=None), 12)
        data = request(message, version)
        assert kept(others + data + others, step=step) == others + covered(data, SECRET) + others


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
@pytest.mark.parametrize(("asked", "answer", "versions"), ANSWERS, ids=lambda one: type(one).__name__)
def test_of_an_answer_all_but_its_secrets_is_kept(
    asked: Any, answer: Any, versions: tuple[int, ...], step: int
) -> None:
    for version in versions:
        redaction = Redaction()
        redaction.passed(request(messages.MetadataRequest(topics=None), 12, 8), by_client=True)
        redaction.passed(request(asked, version, 9), by_client=True)
        other = response(messages.MetadataResponse(brokers=[], topics=[]), 12, 8)
        data = response(answer, version, 9)
        found = kept(other + data, by_client=False, step=step, redaction=redaction)
        assert found == other + covered(data, SECRET)


def test_requests_that_share_a_correlation_id_are_told_apart_by_their_answers() -> None:
    asked, answer, (_, version) = ANSWERS[-2]
    other = request(messages.MetadataRequest(topics=None), 12)
    redaction = Redaction()
    redaction.passed(other + 2 * request(asked, version) + other, by_client=True)
    told = response(messages.MetadataResponse(brokers=[], topics=[]), 12)
    for data in (told, response(answer, version), response(answer, version)):
        assert SECRET not in redaction.passed(data, by_client=False)
    assert redaction.passed(told, by_client=False) == told


TOKENS = [
    ("PLAIN", [b"\0alice\0" + SECRET], [b""], [b"\0alice\0" + b"*" * 13]),
    (
        "SCRAM-SHA-256",
        [b"n,,n=alice,r=" + SECRET, b"c=biws,p=" + SECRET],
        [b"r=" + SECRET, b"v=" + SECRET],
        [b"n,,n=alice,r=" + b"*" * 13, b"*" * 22],
    ),
    ("GSSAPI", [b"\x60" + SECRET, SECRET, SECRET], [SECRET, SECRET], [b"*" * 14, b"*" * 13, b"*" * 13]),
    ("GSSAPI", [b"\x60\0alice\0" + SECRET], [SECRET], [b"*" * 21]),
    ("OAUTHBEARER", [b"n,,\x01auth=Bearer " + SECRET + b"\x01\x01"], [b""], [b"*" * 31]),
]


@pytest.mark.parametrize("step", [1, 1 << 20])
@pytest.mark.parametrize(("mechanism", "sent", "answers", "left"), TOKENS, ids=[row[0] for row in TOKENS])
def test_bare_tokens_after_the_first_handshake_are_written_over(
    mechanism: str, sent: list[bytes], answers: list[bytes], left: list[bytes], step: int
) -> None:
    redaction = Redaction()

    def pass_on(data: bytes, *, by_client: bool = True) -> bytes:
        return b"".join(redaction.passed(data[at : at + step], by_client=by_client) for at in range(0, len(data), step))

    begun = request(messages.SaslHandshakeRequest(mechanism=mechanism), 0)
    assert pass_on(begun) == begun
    agreed = response(messages.SaslHandshakeResponse(mechanisms=[mechanism]), 0)
    assert pass_on(agreed, by_client=False) == agreed
    for at, token in enumerate(sent):
        assert pass_on(framed(token)) == framed(left[at])
        if at < len(answers):
            over = framed(b"*" * len(answers[at]))
            assert pass_on(framed(answers[at]), by_client=False) == over
    after = request(messages.MetadataRequest(topics=None), 12)
    assert pass_on(after) == after
    told = response(messages.MetadataResponse(brokers=[], topics=[]), 12)
    assert pass_on(told, by_client=False) == told


BEARER = b"n,,\x01auth=Bearer " + SECRET + b"\x01logicalCluster=lkc-1\x01\x01"
KERBEROS = b"\x60\x82\x02\x00" + SECRET + b"\0alice\0" + SECRET  # a token may well have two zeros
OTHERS = [
    ("OAUTHBEARER", [BEARER]),
    ("OAUTHBEARER", [b"n,a=alice," + BEARER[3:]]),
    ("GSSAPI", [KERBEROS, b"", b"\x05\x04\0\0" + SECRET]),
    ("GSSAPI", [b"\0alice\0" + SECRET]),
    ("PLAIN", [b"\x60\x82\0alice\0" + SECRET]),
    ("AWS_MSK_IAM", [b'{"x-amz-security-token": "' + SECRET + b'"}', b"n,,n=alice,r=" + SECRET]),
    ("OAUTHBEARER\0", [b"\0alice\0" + SECRET]),
    ("SCRAM-SHA-256", [b"n,,n=a-tokens-id,r=" + SECRET + b",tokenauth=true"]),
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("mechanism", "tokens"), OTHERS, ids=[row[0] for row in OTHERS])
def test_of_mechanisms_whose_tokens_name_nobody_nothing_is_kept(
    mechanism: str, tokens: list[bytes], version: int
) -> None:
    redaction = Redaction()
    for number, name in enumerate(["PLAIN", mechanism]):  # what the last one names holds: KIP-368
        redaction.passed(request(messages.SaslHandshakeRequest(mechanism=name), 1, number), by_client=True)
    for token in tokens:
        data = request(messages.SaslAuthenticateRequest(auth_bytes=token), 2 * version)
        assert redaction.passed(data, by_client=True) == (covered(data, token) if token else data)
        told = messages.SaslAuthenticateResponse(auth_bytes=SECRET, session_lifetime_ms=1000)
        answer = response(told, 2 * version)
        assert redaction.passed(answer, by_client=False) == covered(answer, SECRET)


def test_tokens_of_gssapi_that_no_handshake_goes_before_are_written_over() -> None:
    """As clients of Kafka 0.9 send them: SaslServerAuthenticator takes a first packet that is no request for one."""
    redaction = Redaction()
    for token in (KERBEROS, b"", b"\x05\x04\0\0" + SECRET):
        assert redaction.passed(framed(token), by_client=True) == framed(b"*" * len(token))
        assert redaction.passed(framed(SECRET), by_client=False) == framed(b"*" * len(SECRET))
    asked = request(messages.MetadataRequest(topics=None), 1)
    assert redaction.passed(asked, by_client=True) == asked
    told = response(messages.MetadataResponse(brokers=[], topics=[]), 1)
    assert redaction.passed(told, by_client=False) == told


def test_without_a_handshake_only_what_is_text_names_somebody() -> None:
    for token in (BEARER, KERBEROS, b"\x05\x04\0\0" + SECRET):
        data = request(messages.SaslAuthenticateRequest(auth_bytes=token), 2)
        assert kept(data) == covered(data, token)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", None])
@pytest.mark.parametrize("token", [b"n,r=s3cr3t", b"y,r=", b"n,,r=s3cr3t", b"p=x,r=s3cr3t"])
def test_a_token_that_is_none_of_its_mechanism_is_written_over_and_ends_nothing(
    mechanism: str | None, token: bytes
) -> None:
    handshake = request(messages.SaslHandshakeRequest(mechanism=mechanism), 1) if mechanism else b""
    asked = request(messages.SaslAuthenticateRequest(auth_bytes=token), 1)
    found = kept(handshake + asked)
    assert len(found) == len(handshake + asked)
    assert found.startswith(handshake)
    assert b"s3cr3t" not in found


def test_what_cannot_be_read_is_written_over_behind_what_tells_what_it_is() -> None:
    data = request(messages.SaslAuthenticateRequest(auth_bytes=SECRET), 2)
    for broken in (data[:-1], data + b"\0"):
        sized = (len(broken) - 4).to_bytes(4, "big") + broken[4:]
        assert kept(sized) == sized[:12] + b"*" * (len(sized) - 12)
    newer = bytearray(data)
    newer[6:8] = (39).to_bytes(2, "big")
    assert kept(bytes(newer)) == bytes(newer[:12]) + b"*" * (len(newer) - 12)


def test_a_message_with_secrets_that_never_ends_is_written_over() -> None:
    data = request(messages.SaslAuthenticateRequest(auth_bytes=SECRET * 9), 2)
    for end in range(5, len(data) - 1):
        left = kept(data[:end])
        assert len(left) == end
        assert SECRET[:6] not in left


def test_a_message_that_is_too_long_to_be_read_is_written_over_and_not_held() -> None:
    data = request(messages.SaslAuthenticateRequest(auth_bytes=SECRET * (MAX_READ // 8)), 2)
    redaction = Redaction()
    half = redaction.passed(data[: MAX_READ // 2], by_client=True)
    assert len(half) == MAX_READ // 2
    rest = redaction.passed(data[MAX_READ // 2 :], by_client=True)
    assert half + rest == data[:12] + b"*" * (len(data) - 12)


def test_more_answers_than_are_remembered_are_written_over() -> None:
    redaction = Redaction()
    for number in range(MAX_AWAITED + 1):
        redaction.passed(request(messages.CreateDelegationTokenRequest(), 2, number), by_client=True)
    data = response(messages.CreateDelegationTokenResponse(hmac=SECRET), 2, MAX_AWAITED)
    assert SECRET not in kept(data, by_client=False, redaction=redaction)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00" + bytes(600),
        b"\x16\x03\x01\x02\x60" + bytes(600),
        b"GET / HTTP/1.1\r\n\r\n" * 9,
        b"\xff" * 50,
        b"",
    ],
)
def test_what_is_no_kafka_passes_as_it_is(data: bytes) -> None:
    for step in (1, 7, 1 << 20):
        assert kept(data, step=step) == data


# Over real sockets ----------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, int]]:
    sasl = ["PLAIN", "SCRAM-SHA-256"]
    with Broker(tmp_path / "data", sasl=sasl, users={"alice": PASSWORD}) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        yield host, int(port)


def spoken(upstream: tuple[str, int], out: Path, mechanism: str, **options: Any) -> bytes:
    """What is in the files of a tap through which a client has authenticated."""
    passed = Passed()
    files = Files(out, passed)
    with tapped(upstream, files, passed, **options) as address:
        security = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
        credentials = {"sasl_plain_username": "alice", "sasl_plain_password": PASSWORD}
        with Client(":".join(map(str, address)), **security, **credentials) as client:
            client.versions()
    return b"".join(path.read_bytes() for path in paths_of([out]))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_password_is_in_no_file_and_all_that_an_audit_wants_is(
    guarded: tuple[str, int], tmp_path: Path, mechanism: str
) -> None:
    out = tmp_path / "out"
    data = spoken(guarded, out, mechanism)
    assert PASSWORD.encode() not in data
    assert b",p=" not in data
    assert b",s=" not in data
    losses = Losses()
    seen = [one for path in paths_of([out]) for one in observe(path, losses)]
    assert {one.api_key for one in seen} >= {17, 18, 36}
    assert seen[-1].principal == "User:alice"
    found = [one for path in paths_of([out]) for one in exchanged(path, losses, bodies=True)]
    assert all(one.response_bytes is not None for one in found)
    assert not losses.counts


def test_credentials_are_recorded_where_they_are_asked_for(guarded: tuple[str, int], tmp_path: Path) -> None:
    assert PASSWORD.encode() in spoken(guarded, tmp_path / "out", "PLAIN", keep_credentials=True)


def test_files_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = Files(tmp_path / "out", Passed(), file_bytes=1)
        files.write(b"a" * 10)
        files.write(b"b" * 10)
        files.close()
    finally:
        os.umask(before)
    paths = list((tmp_path / "out").iterdir())
    assert len(paths) >= 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_the_command_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tap", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--keep-credentials" in told
    assert "Credentials are written over" in told

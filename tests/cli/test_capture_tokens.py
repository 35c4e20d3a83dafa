"""Packets that somebody else captured have tokens of any mechanism in the clear: no command's output has them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tagwire import messages

from ..capture.traffic import Talk, asks, offers, pcap, response
from ..capture.traffic import request as sent

SECRET = b"sw0rdfish.sw0rdfish"
TOKENS = {
    "OAUTHBEARER": b"n,,\x01auth=Bearer " + SECRET + b"\x01\x01",
    "GSSAPI": b"\x60\x1f\0alice\0" + SECRET,
    "PLAIN": b"\0alice\0" + SECRET,
}


@pytest.fixture(params=sorted(TOKENS))
def packets(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A client that logs in, and logs in again on the same connection (KIP-368)."""
    mechanism = request.param
    talk = Talk().open().client(asks(1)).broker(offers(1, Metadata=(0, 12)))
    for number in (2, 5):
        talk.client(sent(messages.SaslHandshakeRequest(mechanism=mechanism), 1, number))
        talk.broker(response(messages.SaslHandshakeResponse(mechanisms=[mechanism]), 1, number))
        talk.client(sent(messages.SaslAuthenticateRequest(auth_bytes=TOKENS[mechanism]), 2, number + 1))
        answer = messages.SaslAuthenticateResponse(auth_bytes=SECRET, session_lifetime_ms=60_000)
        talk.broker(response(answer, 2, number + 1))
        talk.client(sent(messages.MetadataRequest(topics=None), 12, number + 2))
        talk.broker(response(messages.MetadataResponse(cluster_id="c"), 12, number + 2))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(talk.packets()))
    assert SECRET in path.read_bytes()
    return path


def hides_secret(data: bytes) -> bool:
    forms = [SECRET, SECRET.hex().encode()]
    forms += [base64.b64encode(bytes(before) + SECRET)[4:-4] for before in range(3)]  # whatever stands around it
    return not any(form in data for form in forms)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["lines", "json"])
def test_capture_show_has_no_token_in_bodies(run, packets, form):
    ran = run("capture", "show", packets, "--bodies", *form)
    assert ran.code == 0
    assert ran.out.count("SaslAuthenticate") >= 2
    assert "60000" in ran.out  # the rest of the body is there
    assert hides_secret(ran.out.encode())


def test_an_audit_has_no_token_in_its_page_and_tables(run, packets, tmp_path):
    out = tmp_path / "out"
    ran = run("audit", packets, "--target", "4.3", "--out", out)
    assert ran.code == 0
    files = [path for path in out.rglob("*") if path.is_file()]
    assert files
    assert all(hides_secret(path.read_bytes()) for path in files)
    assert hides_secret(ran.out.encode() + ran.err.encode())

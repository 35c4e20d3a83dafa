"""GSSAPI's exchange, whatever the broker says: no layer, a bounded number of rounds, and an end."""

from __future__ import annotations

import pytest

from tagwire.errors import AuthenticationError
from tagwire.rpc.gssapi import MAX_CHALLENGE, MAX_ROUNDS, GssapiClient

NO_LAYER = b"\x01\0\0\0"


class Context:
    """A context that is complete after so many tokens of the broker's; it wraps by a mark."""

    def __init__(self, rounds: int = 1) -> None:
        self.rounds = rounds
        self.taken: list[bytes] = []

    @property
    def is_complete(self) -> bool:
        return len(self.taken) > self.rounds

    def step(self, token: bytes) -> bytes:
        self.taken.append(token)
        return b"" if self.is_complete else b"token-%d" % len(self.taken)

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"wrapped:"):
            raise AuthenticationError("GSSAPI: a token was invalid")
        return message.removeprefix(b"wrapped:")


def said(*challenges: bytes, rounds: int = 1) -> list[bytes | None]:
    client = GssapiClient(lambda: Context(rounds))
    return [client.respond(challenge) for challenge in challenges]


def test_an_exchange_ends_with_no_layer() -> None:
    layers = b"wrapped:\x07\x00\xff\xff"
    assert said(b"", b"proof", layers, b"") == [b"token-1", b"", b"wrapped:" + NO_LAYER, None]


def test_a_context_is_begun_with_the_first_token_and_not_before() -> None:
    begun: list[Context] = []

    def begin() -> Context:
        begun.append(Context())
        return begun[0]

    client = GssapiClient(begin)
    assert (client.mechanism, client.blocks) == ("GSSAPI", True)
    assert not begun
    client.respond(b"")
    assert begun[0].taken == [b""]


@pytest.mark.parametrize(
    ("challenges", "why"),
    [
        ([b"hello"], "the broker speaks first"),
        ([b"", b""], "does not prove who it is"),
        ([b"", b"proof", b""], "does not say which security layers"),
        ([b"", b"proof", b"bare" + NO_LAYER], "a token was invalid"),
        ([b"", b"proof", b"wrapped:\x06\0\0\0"], "wants a security layer"),
        ([b"", b"proof", b"wrapped:"], "wants a security layer"),
        ([b"", b"proof", b"wrapped:\x01\0\0\0\0"], "wants a security layer"),
        ([b"", b"proof", b"wrapped:" + NO_LAYER, b"more"], "goes on after the end"),
        ([b"", b"proof", b"wrapped:" + NO_LAYER, b"", b""], "goes on after the end"),
        ([b"", bytes(MAX_CHALLENGE + 1)], f"a token of {MAX_CHALLENGE + 1} bytes"),
    ],
)
def test_a_broker_that_breaks_the_exchange_is_refused(challenges: list[bytes], why: str) -> None:
    with pytest.raises(AuthenticationError, match=why):
        said(*challenges)


def test_a_context_that_is_never_complete_ends() -> None:
    assert len(said(b"", *[b"go on"] * MAX_ROUNDS, rounds=99)) == MAX_ROUNDS + 1
    with pytest.raises(AuthenticationError, match="does not prove who it is"):
        said(b"", *[b"go on"] * (MAX_ROUNDS + 1), rounds=99)

"""SCRAM-SHA-256 and SCRAM-SHA-512, both roles, without the connection (RFC 5802, RFC 7677; KIP-84).

Names and passwords go as UTF-8, without SASLprep, as Kafka does it; channels are not bound (`n,,`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tagwire.errors import AuthenticationError, ConfigError

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""{mechanism: name of its hash function in hashlib}. Source: KIP-84."""

SCRAM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""{mechanism: its number on the wire}. Source: KIP-554; Kafka's ScramMechanism."""

# Fewer iterations make a stolen exchange cheap to guess from (RFC 7677); more are a peer that wants our time.
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000

MAX_SET_ITERATIONS: Final = 16384
"""A credential with more is not set by clients. Source: KIP-554; Kafka's ScramMechanism.maxIterations."""

MAX_TOKEN: Final = 64 * 1024
"""Bytes of the longest message of an exchange that is read; honest ones have a few hundred."""

_NONCE_BYTES: Final = 24
_SALT_BYTES: Final = 24
_DIGEST_BYTES: Final = 32  # of SHA-256
_GS2_HEADER: Final = "n,,"
_TOKEN_AUTH: Final = "tokenauth"  # an extension of KIP-48's: the name is a delegation token's id
# By which users that do not exist have salts, too, so that an exchange does not tell who does.
_UNKNOWN_USERS: Final = secrets.token_bytes(32)

Shape = tuple[int, int]
"""What an exchange shows of a credential before the proof: bytes of its salt, and iterations."""

DEFAULT_SHAPE: Final[Shape] = (_SALT_BYTES, MIN_ITERATIONS)
"""Of `scram_credential` where nothing else is said."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a password: enough to check it, not to use it elsewhere."""

    salt: bytes = field(repr=False)
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def scram_credential(
    mechanism: str, password: str, *, salt: bytes | None = None, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """The credential of a password; `salt` None takes a random one. Raises ConfigError for another mechanism or an
    iteration count out of bounds."""
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ConfigError(f"iterations={iterations}: allowed is {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = salted_password(mechanism, password, salt, iterations)
    return salted_credential(mechanism, salted, salt=salt, iterations=iterations)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """What KIP-554 sends in a password's place: RFC 5802's SaltedPassword. Raises ConfigError for another mechanism."""
    return hashlib.pbkdf2_hmac(_hash(mechanism), password.encode(), salt, iterations)


def salted_credential(mechanism: str, salted_password: bytes, *, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a password that was salted already, as AlterUserScramCredentials carries it (KIP-554)."""
    digest = _hash(mechanism)
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    return ScramCredential(salt, iterations, stored_key, hmac.digest(salted_password, b"Server Key", digest))


class ScramClient:
    """The client's side of one exchange: `respond(b"")` first, then `respond(challenge)` until it gives None.

    Args:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        nonce: for vectors only; None takes a random one.
    """

    def __init__(self, mechanism: str, username: str, password: str, *, nonce: str | None = None) -> None:
        self.mechanism = mechanism
        self._hash = _hash(mechanism)
        self._password = password
        self._nonce = _new_nonce() if nonce is None else nonce
        self._first = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._signature = b""
        self._steps: Iterator[Callable[[bytes], bytes | None]] = iter((self._begin, self._prove, self._believe))

    def respond(self, challenge: bytes) -> bytes | None:
        """The next token to send; None when the broker has proved that it knows the password too. Each of the three
        steps is taken once, whatever the broker sends.

        Raises:
            AuthenticationError: the broker refuses, breaks the exchange, or cannot prove itself.
        """
        step = next(self._steps, None)
        if step is None:
            raise AuthenticationError(f"the broker goes on after the end of {self.mechanism}")
        return step(challenge)

    def _begin(self, challenge: bytes) -> bytes:
        if challenge:
            raise AuthenticationError(f"the broker speaks first, which {self.mechanism} does not have")
        return f"{_GS2_HEADER}{self._first}".encode()

    def _believe(self, challenge: bytes) -> None:
        fields = _fields(challenge, "the broker's last message", allowed="ve", extensions=True)
        if "e" in fields:
            raise AuthenticationError(f"the broker refused {self.mechanism}: {fields['e'][:100]!r}")
        if not hmac.compare_digest(_bytes(fields, "v", "the broker's last message"), self._signature):
            raise AuthenticationError(f"the broker could not prove by {self.mechanism} that it knows the password")

    def _prove(self, challenge: bytes) -> bytes:
        what = "the broker's first message"
        fields = _fields(challenge, what, allowed="rsi", extensions=True)
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationError(f"{what} does not carry on our nonce")
        salt = _bytes(fields, "s", what)
        count = fields.get("i", "")
        if not (count.isascii() and count.isdigit() and len(count) < 10):
            raise AuthenticationError(f"{what} has no iteration count")
        if not MIN_ITERATIONS <= int(count) <= MAX_ITERATIONS:
            raise AuthenticationError(f"{what} asks for {count} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}")
        salted = salted_password(self.mechanism, self._password, salt, int(count))
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c={_base64(_GS2_HEADER.encode())},r={nonce}"
        signed = f"{self._first},{challenge.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={_base64(_xor(client_key, signature))}".encode()


class ScramServer:
    """The broker's side of one exchange: `respond(token)` to each token until `username` is known.

    Args:
        credentials: a user's credential, None for a user that does not exist.
        shapes: those that users' credentials have. One who does not exist is answered as if of one of them, always the
            same while they are the same; of `DEFAULT_SHAPE` where there are none.
        nonce: for vectors only; None takes a random one.

    Attributes:
        username: who has proved to know the password; None until then.
        expires_at: None: passwords do not end.
    """

    def __init__(
        self,
        mechanism: str,
        credentials: Callable[[str], ScramCredential | None],
        shapes: Callable[[], Iterable[Shape]] = tuple,
        *,
        nonce: str | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.username: str | None = None
        self.expires_at: float | None = None
        self._hash = _hash(mechanism)
        self._credentials = credentials
        self._shapes = shapes
        self._nonce = _new_nonce() if nonce is None else nonce
        self._claimed = ""
        self._gs2 = ""
        self._signed = ""
        self._credential: ScramCredential | None = None
        self._known = False

    def respond(self, token: bytes) -> bytes:
        """The next token to send. Raises AuthenticationError: the exchange is broken, or the proof wrong."""
        return self._challenge(token) if self._credential is None else self._check(self._credential, token)

    def _challenge(self, token: bytes) -> bytes:
        what = "the client's first message"
        parts = _text(token, what).split(",", 2)
        if len(parts) != 3 or parts[0] not in ("n", "y"):
            raise AuthenticationError(f"{what} asks for channel binding, or is none")
        bare = parts[2]
        fields = _fields(bare.encode(), what, allowed="nr", extensions=True)
        if "n" not in fields or not fields.get("r"):
            raise AuthenticationError(f"{what} lacks a name or a nonce")
        # As Kafka: nobody acts for somebody else.
        if parts[1] not in ("", f"a={fields['n']}"):
            raise AuthenticationError(f"{what} asks to be somebody else than its user")
        if "=" in fields["n"].replace("=2C", "").replace("=3D", ""):
            raise AuthenticationError(f"{what} has a name with = that is neither =2C nor =3D")
        self._claimed = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self._gs2 = f"{parts[0]},{parts[1]},"
        # A delegation token's id is no user's name, and there are no such tokens. Source: Kafka's ScramSaslServer.
        has_token = fields.get(_TOKEN_AUTH, "").lower() == "true"
        found = None if has_token else self._credentials(self._claimed)
        self._known = found is not None
        self._credential = found or self._pretended()
        self._nonce = fields["r"] + self._nonce
        server_first = f"r={self._nonce},s={_base64(self._credential.salt)},i={self._credential.iterations}"
        self._signed = f"{bare},{server_first}"
        return server_first.encode()

    def _pretended(self) -> ScramCredential:
        user = f"{self.mechanism} {self._claimed}"
        # A shape more or less changes only the answers that are of it.
        drawn = {hmac.digest(_UNKNOWN_USERS, f"{shape} {user}".encode(), "sha256"): shape for shape in self._shapes()}
        size, iterations = drawn[max(drawn)] if drawn else DEFAULT_SHAPE
        parts = -(-size // _DIGEST_BYTES)
        salt = b"".join(hmac.digest(_UNKNOWN_USERS, f"{part} {user}".encode(), "sha256") for part in range(parts))
        return ScramCredential(salt[:size], iterations, b"", b"")

    def _check(self, credential: ScramCredential, token: bytes) -> bytes:
        what = "the client's last message"
        fields = _fields(token, what, allowed="crp", extensions=True)
        without_proof, separator, _ = _text(token, what).rpartition(",p=")
        if not separator or self.username is not None:
            raise AuthenticationError(f"{what} is out of place, or has no proof")
        if fields.get("r") != self._nonce or _bytes(fields, "c", what) != self._gs2.encode():
            raise AuthenticationError(f"{what} does not carry on the exchange")
        signed = f"{self._signed},{without_proof}".encode()
        proof = _bytes(fields, "p", what)
        signature = hmac.digest(credential.stored_key, signed, self._hash)
        is_right = len(proof) == len(signature) and hmac.compare_digest(
            hashlib.new(self._hash, _xor(proof, signature)).digest(), credential.stored_key
        )
        if not is_right or not self._known:
            raise AuthenticationError(f"{self.mechanism}: wrong user or password")
        self.username = self._claimed
        return f"v={_base64(hmac.digest(credential.server_key, signed, self._hash))}".encode()


def _hash(mechanism: str) -> str:
    if mechanism not in SCRAM_HASHES:
        raise ConfigError(f"sasl_mechanism={mechanism!r}: allowed for SCRAM is {', '.join(SCRAM_HASHES)}")
    return SCRAM_HASHES[mechanism]


def _new_nonce() -> str:
    return secrets.token_urlsafe(_NONCE_BYTES)


def _text(data: bytes, what: str) -> str:
    if not data:
        raise AuthenticationError(f"{what} is empty")
    if len(data) > MAX_TOKEN:
        raise AuthenticationError(f"{what} has {len(data)} bytes; {MAX_TOKEN} are the most")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise AuthenticationError(f"{what} is no UTF-8") from None


def _fields(data: bytes, what: str, *, allowed: str, extensions: bool = False) -> dict[str, str]:
    """The `k=value` attributes of a message, each once. An extension is passed over, but `m`, which must be understood
    and is never allowed. Source: RFC 5802."""
    found: dict[str, str] = {}
    for part in _text(data, what).split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) == 0 or name in found:
            raise AuthenticationError(f"{what} is no list of attributes")
        if name not in allowed and (not extensions or name == "m"):
            raise AuthenticationError(f"{what} holds {name[:20]!r}, which has no place there")
        found[name] = value
    return found


def _bytes(fields: dict[str, str], name: str, what: str) -> bytes:
    try:
        found = base64.b64decode(fields.get(name, ""), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not found:
        raise AuthenticationError(f"{what} lacks {name!r}, or it is no base64")
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right))

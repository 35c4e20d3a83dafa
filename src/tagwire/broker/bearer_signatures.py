"""A validator of bearer tokens that an issuer signed, whose public keys stand in a file: a JSON Web Key Set.

Nothing is fetched over a network: whoever runs the broker brings the file, and replaces it when the issuer's keys
change. Needs the extra `jwks` (the package cryptography). Source: RFC 7515, RFC 7517, RFC 7518; Kafka's
BrokerJwtValidator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from tagwire.broker.bearer_tokens import ClaimsCheck, base64url, parsed, refused
from tagwire.errors import AuthenticationError, ConfigError
from tagwire.extras import Needs
from tagwire.rpc import ValidatedToken

MOST_FILE_BYTES: Final = 1 << 20
MOST_KEYS: Final = 1000
LEAST_RSA_BITS: Final = 2048
"""RFC 7518, section 3.3."""

MOST_RSA_BITS: Final = 8192

BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Kafka's ClaimValidationUtils takes off both ends of a user's name: Java's String.trim. Names in unsecured tokens
stay as they are."""

_LARGEST_EXPONENT: Final = 1 << 33

_CURVES: Final = {"P-256": ("ES256", 32), "P-384": ("ES384", 48), "P-521": ("ES512", 66)}
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

Verify = Callable[[str, bytes, bytes], bool]
"""Whether a signature is the key's, of an algorithm, signature and what is signed."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A public key; `algorithms` are those it may be used with."""

    algorithms: frozenset[str]
    verify: Verify


class SignedTokens:
    """Believes JWTs that a key of a file has signed: RS, PS and ES with 256, 384 and 512 bits. One that does not say
    when it was issued (claim `iat`) is believed, too, which Kafka's validator refuses.

    Args:
        jwks: the file with the issuer's public keys. It is read again with the next token when it has changed: a key
            that is not in it any more vouches for nobody. While it cannot be read, the keys from before count.
        check: what the claims have to say; name issuer and audience there.

    Raises:
        ConfigError: the file cannot be read, or has no key that can be used.
        MissingExtraError: cryptography is not installed.
    """

    def __init__(self, jwks: str | PathLike[str], check: ClaimsCheck | None = None) -> None:
        self._path = Path(jwks)
        self._check = check or ClaimsCheck()
        self._read_at = 0
        self._keys: Mapping[str | None, list[_Key]] = {}
        self._load()

    def __call__(self, token: str) -> ValidatedToken:
        """Raises AuthenticationError: the token is refused."""
        header, claims, signature, signed = parsed(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or "crit" in header or not isinstance(key_id, str | None):
            raise refused("its header asks for what is not known")
        keys = self._candidates(algorithm, key_id)
        if not any(key.verify(algorithm, signature, signed) for key in keys):
            raise refused("no key of the issuer's has signed it")
        found = self._check.validated(claims)
        principal = found.principal.strip(BLANKS)
        if not principal:
            raise refused("the claim with the user's name names nobody")
        return replace(found, principal=principal)

    def _candidates(self, algorithm: str, key_id: str | None) -> list[_Key]:
        """The keys that may have signed a token; one that names none may be signed by the only one that there is."""
        unread: ConfigError | None = None
        if self._changed_at() != self._read_at:
            try:
                self._load()
            except ConfigError as error:  # half of it is written, perhaps: the keys from before count
                unread = error
        found = self._named(algorithm, key_id)
        if not found and unread is not None:
            raise AuthenticationError(str(unread))
        return found

    def _named(self, algorithm: str, key_id: str | None) -> list[_Key]:
        if key_id is None:
            found = [key for keys in self._keys.values() for key in keys if algorithm in key.algorithms]
            return found if len(found) == 1 else []
        return [key for key in self._keys.get(key_id, ()) if algorithm in key.algorithms]

    def _changed_at(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except (OSError, ValueError):  # a path with a character 0
            return self._read_at

    def _load(self) -> None:
        read_at = self._changed_at()
        try:
            with self._path.open("rb") as file:
                data = file.read(MOST_FILE_BYTES + 1)
            if len(data) > MOST_FILE_BYTES:
                raise ConfigError(f"jwks={str(self._path)!r}: more than {MOST_FILE_BYTES} bytes")
            listed = json.loads(data)["keys"]
        except OSError as error:
            raise ConfigError(f"jwks={str(self._path)!r}: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ConfigError(f"jwks={str(self._path)!r}: not a JSON Web Key Set") from None
        keys: dict[str | None, list[_Key]] = {}
        for told in listed[:MOST_KEYS] if isinstance(listed, list) else ():
            key = _key(told) if isinstance(told, dict) else None
            if key is not None:
                key_id = told.get("kid")
                keys.setdefault(key_id if isinstance(key_id, str) else None, []).append(key)
        if not keys:
            raise ConfigError(f"jwks={str(self._path)!r}: no key that verifies signatures (RSA, EC)")
        self._keys, self._read_at = keys, read_at


def _key(told: Mapping[str, Any]) -> _Key | None:
    """A key of a set; None for one that is for something else, or is broken."""
    if told.get("use", "sig") != "sig":
        return None
    try:
        algorithms, verify = _rsa(told) if told.get("kty") == "RSA" else _elliptic(told)
    except (ValueError, KeyError, TypeError):
        return None
    only = told.get("alg")
    return _Key(frozenset(each for each in algorithms if only in (None, each)), verify)


def _rsa(told: Mapping[str, Any]) -> tuple[tuple[str, ...], Verify]:
    with Needs("jwks"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    modulus, exponent = _number(told["n"]), _number(told["e"])
    if not LEAST_RSA_BITS <= modulus.bit_length() <= MOST_RSA_BITS or exponent > _LARGEST_EXPONENT:
        raise ValueError("its size")
    public = RSAPublicNumbers(exponent, modulus).public_key()
    digests = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}

    def verify(algorithm: str, signature: bytes, signed: bytes) -> bool:
        digest = digests[algorithm[2:]]
        how = (
            padding.PKCS1v15() if algorithm.startswith("RS") else padding.PSS(padding.MGF1(digest), digest.digest_size)
        )
        try:
            public.verify(signature, signed, how, digest)
        except InvalidSignature:
            return False
        return True

    return _RSA, verify


def _elliptic(told: Mapping[str, Any]) -> tuple[tuple[str, ...], Verify]:
    with Needs("jwks"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    digests = {"P-256": hashes.SHA256(), "P-384": hashes.SHA384(), "P-521": hashes.SHA512()}
    name = told["crv"]
    algorithm, size = _CURVES[name]
    public = ec.EllipticCurvePublicNumbers(_number(told["x"]), _number(told["y"]), curves[name]).public_key()

    def verify(_: str, signature: bytes, signed: bytes) -> bool:
        if len(signature) != 2 * size:
            return False
        halves = (int.from_bytes(half, "big") for half in (signature[:size], signature[size:]))
        try:
            public.verify(encode_dss_signature(*halves), signed, ec.ECDSA(digests[name]))
        except InvalidSignature:
            return False
        return True

    return (algorithm,), verify


def _number(text: str) -> int:
    """A number as JWK has it (RFC 7518, section 2)."""
    return int.from_bytes(base64url(text), "big")

"""Bearer tokens: which are believed, and that no text has one."""

from __future__ import annotations

import base64
import json
import os

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tagwire.broker import ClaimsCheck, SignedTokens, UnsecuredTokens, ValidatedToken
from tagwire.broker.config_file import read_config
from tagwire.errors import AuthenticationError, ConfigError

NOW = 1_700_000_000
CLAIMS = {"sub": "alice", "exp": NOW + 60, "iss": "https://issuer", "aud": ["kafka", "other"], "scope": "read write"}


def encoded(data):
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsecured(claims, header=None, signature=""):
    return ".".join((encoded({"alg": "none"} if header is None else header), encoded(claims), signature))


def check(**options):
    return ClaimsCheck(wall=lambda: float(NOW), **options)


def test_an_unsecured_token_stands_for_its_subject_until_it_ends():
    assert UnsecuredTokens(check())(unsecured(CLAIMS)) == ValidatedToken("alice", NOW + 60.0)
    other = UnsecuredTokens(check(principal_claim="email"))
    assert other(unsecured({"email": "a@b", "exp": NOW + 1.5})) == ValidatedToken("a@b", NOW + 1.5)


FITTING = [
    {"issuer": "https://issuer"},
    {"audience": "kafka"},
    {"required_scope": ["read"]},
    {"required_scope": ["write", "read"]},
]


@pytest.mark.parametrize("options", FITTING)
def test_what_a_broker_asks_for_may_be_there(options):
    assert UnsecuredTokens(check(**options))(unsecured(CLAIMS)).principal == "alice"


WRONG = [
    ({}, {"exp": None}, "claim exp is missing"),
    ({}, {"exp": "soon"}, "claim exp is no time"),
    ({}, {"exp": True}, "claim exp is no time"),
    ({}, {"exp": 1e300}, "claim exp is no time"),
    ({}, {"exp": NOW}, "it has expired"),
    ({"clock_skew_s": 5}, {"exp": NOW - 5}, "it has expired"),
    ({}, {"iat": NOW + 1}, "claim iat is in the future"),
    ({}, {"nbf": NOW + 1}, "claim nbf is in the future"),
    ({"clock_skew_s": 90}, {"iat": NOW + 60}, "it expires before its claim iat"),
    ({}, {"sub": None}, "claim sub names nobody"),
    ({}, {"sub": 7}, "claim sub names nobody"),
    ({}, {"sub": " "}, "claim sub names nobody"),
    ({}, {"sub": "a" * 1025}, "claim sub has more than 1024 characters"),
    ({"issuer": "https://another"}, {}, "another issuer made it"),
    ({"audience": "spark"}, {}, "it is for another audience"),
    ({"audience": "kafka"}, {"aud": "kafka spark"}, "it is for another audience"),
    ({"audience": "kafka"}, {"aud": None}, "it is for another audience"),
    ({"required_scope": ["admin"]}, {}, "its scope is not enough"),
    ({"required_scope": ["read"]}, {"scope": 3}, "its scope is not enough"),
]


@pytest.mark.parametrize(("options", "claims", "why"), WRONG)
def test_a_token_whose_claims_do_not_fit_is_refused(options, claims, why):
    with pytest.raises(AuthenticationError, match=f"the token is refused: {why}"):
        UnsecuredTokens(check(**options))(unsecured({**CLAIMS, **claims}))


def test_clocks_may_differ_by_as_much_as_is_said():
    late, early = {**CLAIMS, "exp": NOW - 4}, {**CLAIMS, "nbf": NOW + 5}
    validator = UnsecuredTokens(check(clock_skew_s=5))
    assert (validator(unsecured(late)).principal, validator(unsecured(early)).principal) == ("alice", "alice")


def test_a_token_past_its_end_lasts_for_as_long_as_clocks_may_differ_and_others_end_when_they_say():
    validator = UnsecuredTokens(check(clock_skew_s=5))
    assert validator(unsecured({**CLAIMS, "exp": NOW + 1})).expires_at == NOW + 1
    assert validator(unsecured({**CLAIMS, "exp": NOW})).expires_at == NOW + 5
    assert validator(unsecured({**CLAIMS, "exp": NOW - 4})).expires_at == NOW + 1


MALFORMED = [
    "",
    "s3cret",
    "s3cret.s3cret",
    "a.b.c.d",
    "!!!!.e30.",
    f"{encoded({'alg': 'none'})}.{encoded(b's3cret')}.",
    f"{encoded({'alg': 'none'})}.{encoded([CLAIMS])}.",
    f"{encoded({'alg': 'none'})}.{encoded(b'[' * 100_000)}.",
    f"{encoded({'alg': 'none'})}.{encoded(CLAIMS)}.c2ln",
    unsecured(CLAIMS, {"alg": "RS256"}),
    unsecured(CLAIMS, {}),
    "a" * (1 << 20),
    "é.é.é",
]


@pytest.mark.parametrize("token", MALFORMED, ids=lambda token: token[:20])
def test_what_is_no_token_is_refused_without_being_told(token):
    with pytest.raises(AuthenticationError) as caught:
        UnsecuredTokens(check())(token)
    assert len(str(caught.value)) < 120
    assert "s3cret" not in str(caught.value)


# Signed by an issuer ------------------------------------------------------------------------------------------------

RSA = rsa.generate_private_key(65537, 2048)
CURVES = {
    "ES256": (ec.SECP256R1(), "P-256", 32, hashes.SHA256()),
    "ES512": (ec.SECP521R1(), "P-521", 66, hashes.SHA512()),
}
ELLIPTIC = {name: ec.generate_private_key(curve) for name, (curve, *_) in CURVES.items()}
DIGESTS = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def number(value):
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def rsa_key(key=RSA, **more):
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": "r", "n": number(numbers.n), "e": number(numbers.e), **more}


def elliptic_key(name):
    numbers = ELLIPTIC[name].public_key().public_numbers()
    return {"kty": "EC", "kid": name, "crv": CURVES[name][1], "x": number(numbers.x), "y": number(numbers.y)}


def signed(algorithm, claims=CLAIMS, key=RSA, **header):
    data = f"{encoded({'alg': algorithm, **header})}.{encoded(claims)}"
    if algorithm.startswith("ES"):
        _, _, size, digest = CURVES[algorithm]
        halves = decode_dss_signature(ELLIPTIC[algorithm].sign(data.encode(), ec.ECDSA(digest)))
        signature = b"".join(half.to_bytes(size, "big") for half in halves)
    else:
        digest = DIGESTS[algorithm[2:]]
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        signature = key.sign(data.encode(), padding.PKCS1v15() if algorithm.startswith("RS") else pss, digest)
    return f"{data}.{encoded(signature)}"


@pytest.fixture
def issuer(tmp_path):
    path = tmp_path / "jwks.json"

    def write(*keys):
        path.write_text(json.dumps({"keys": keys}))
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))
        return path

    write(rsa_key(), *map(elliptic_key, ELLIPTIC), {"kty": "oct", "k": "s3cret"}, {"kty": "RSA"}, 3)
    return write


@pytest.fixture
def validator(issuer, tmp_path):
    return SignedTokens(tmp_path / "jwks.json", check(issuer="https://issuer", audience="kafka"))


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS512", "ES256", "ES512"])
def test_a_token_that_the_issuer_signed_is_believed(validator, algorithm):
    key_id = algorithm if algorithm.startswith("ES") else "r"
    assert validator(signed(algorithm, kid=key_id)) == ValidatedToken("alice", NOW + 60.0)
    assert validator(signed(algorithm)) == ValidatedToken("alice", NOW + 60.0)  # it can only be that key


def test_a_token_that_anybody_made_is_not(validator):
    good = signed("RS256", kid="r")
    header, _, signature = good.split(".")
    another = rsa.generate_private_key(65537, 2048)
    for token in (
        unsecured(CLAIMS),
        f"{header}.{encoded({**CLAIMS, 'sub': 'root'})}.{signature}",
        f"{header}.{encoded(CLAIMS)}.",
        signed("RS256", key=another, kid="r"),
        signed("RS256", kid="unknown"),
        signed("RS256", kid="r", crit=["b64"]),
        signed("ES256", kid="r"),
        good.replace(header, encoded({"alg": "HS256", "kid": "r"})),
        good.replace(header, encoded({"alg": ["RS256"], "kid": "r"})),
        good.replace(header, encoded({"alg": "RS256", "kid": 7})),
    ):
        with pytest.raises(AuthenticationError, match=r"no key of the issuer's|asks for what is not known"):
            validator(token)


def test_claims_count_behind_a_good_signature_too(validator):
    with pytest.raises(AuthenticationError, match="for another audience"):
        validator(signed("RS256", {**CLAIMS, "aud": "spark"}))


def test_blanks_around_the_name_in_a_signed_token_are_nobodys_name(validator):
    name = "\t al ice\n "
    assert validator(signed("RS256", {**CLAIMS, "sub": name}, kid="r")).principal == "al ice"
    assert UnsecuredTokens(check())(unsecured({**CLAIMS, "sub": name})).principal == name  # as in Kafka


def test_a_signed_token_whose_name_is_all_blanks_names_nobody(validator):
    for name in (" \t\n", "\x01", "\0 \x1f"):
        with pytest.raises(AuthenticationError, match="names nobody"):
            validator(signed("RS256", {**CLAIMS, "sub": name}, kid="r"))


def test_keys_that_the_issuer_changed_are_read_again(validator, issuer, tmp_path):
    following = rsa.generate_private_key(65537, 2048)
    token = signed("RS256", key=following, kid="next")
    with pytest.raises(AuthenticationError):
        validator(token)
    issuer(rsa_key(following, kid="next"))
    assert validator(token).principal == "alice"
    with pytest.raises(AuthenticationError):
        validator(signed("RS256", kid="r"))
    (tmp_path / "jwks.json").write_text("{")
    with pytest.raises(AuthenticationError, match="not a JSON Web Key Set"):
        validator(signed("RS256", kid="r"))
    assert validator(token).principal == "alice"


def test_a_key_that_the_issuer_took_back_vouches_for_nobody_from_the_next_token_on(validator, issuer):
    token = signed("RS256", kid="r")
    assert validator(token).principal == "alice"
    issuer(elliptic_key("ES256"))
    with pytest.raises(AuthenticationError, match="no key of the issuer's"):
        validator(token)


def test_a_key_is_used_for_what_it_is_for(issuer):
    path = issuer(rsa_key(alg="RS512"), rsa_key(kid="e", use="enc"), rsa_key(rsa.generate_private_key(65537, 1024)))
    validator = SignedTokens(path, check())
    assert validator(signed("RS512", kid="r")).principal == "alice"
    for token in (signed("RS256", kid="r"), signed("RS512", kid="e")):
        with pytest.raises(AuthenticationError):
            validator(token)


def test_a_key_that_says_nonsense_of_itself_costs_no_other_its_use(issuer):
    validator = SignedTokens(issuer(rsa_key(kid="e", alg=["RS256"]), rsa_key(kid="f", alg={}), rsa_key()), check())
    assert validator(signed("RS256", kid="r")).principal == "alice"
    with pytest.raises(AuthenticationError):
        validator(signed("RS256", kid="e"))


@pytest.mark.parametrize(
    "content", ["", "[]", '{"keys": []}', '{"keys": 3}', '{"keys": [{"kty": "oct", "k": "s3cret"}]}']
)
def test_a_file_without_keys_is_named(tmp_path, content):
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"keys\.json") as caught:
        SignedTokens(path)
    assert "s3cret" not in str(caught.value)


def test_a_settings_file_names_the_validator(tmp_path, issuer):
    file = tmp_path / "broker.toml"
    file.write_text("[oauthbearer]\nvalidator = 'unsecured'\nclock_skew_s = 1e10\nrequired_scope = ['read']\n")
    assert read_config(file)["oauthbearer_validator"](unsecured(CLAIMS)).principal == "alice"
    file.write_text(
        "[oauthbearer]\nvalidator = 'jwks'\njwks = 'jwks.json'\nissuer = 'https://issuer'\naudience = 'kafka'\n"
        "clock_skew_s = 1e10\nprincipal_claim = 'sub'\n"
    )
    assert read_config(file)["oauthbearer_validator"](signed("RS256")).principal == "alice"

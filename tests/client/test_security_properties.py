"""The three families of names in which people have their security: confluent-kafka's, Java's, and ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tagwire.client import Client, ClientCredentials, OAuthToken, Security, TokenRefresh
from tagwire.client.config import parse
from tagwire.client.kerberos import Kerberos
from tagwire.errors import ConfigError, TokenError

from ..certificates import Certificates
from .fake_broker import FakeCluster

BOOTSTRAP = {"bootstrap.servers": "kafka-1:9092"}
URL = "https://login.example/token"
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
KERBEROS = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="{}" {};'
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "sasl.login.callback.handler.class"


def options(properties: dict[str, Any]) -> dict[str, Any]:
    return parse({**BOOTSTRAP, **properties}).security


CREDENTIALS = ClientCredentials(URL, "me", "hunter2", "kafka", {"logicalCluster": "lkc-1"})
FAMILIES = [
    {  # librdkafka
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "hunter2",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
    },
    {  # Java before 4.1
        "sasl.oauthbearer.token.endpoint.url": URL,
        HANDLER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f'{MODULE} required clientId="me" clientSecret="hunter2" scope="kafka" '
        'extension_logicalCluster="lkc-1";',
    },
    {  # Java from 4.1 on
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hunter2",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.jaas.config": f'{MODULE} required extension_logicalCluster="lkc-1";',
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    },
]


@pytest.mark.parametrize("family", FAMILIES, ids=["librdkafka", "Java 3", "Java 4"])
def test_client_credentials_come_in_each_family(family: dict[str, str]) -> None:
    found = options({**OAUTH, **family})
    assert found.pop("sasl_oauth_token") == CREDENTIALS
    assert found == {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    settings = parse({**BOOTSTRAP, **OAUTH, **family})
    assert "hunter2" not in repr(settings)
    Security(**settings.security)


def test_a_property_comes_before_the_option_of_the_login_module_as_with_javas_clients() -> None:
    before = 'clientId="not me" clientSecret="hunter3" scope="all"'
    found = options(
        {**OAUTH, **FAMILIES[2], "sasl.jaas.config": f'{MODULE} required {before} extension_logicalCluster="lkc-1";'}
    )
    assert found["sasl_oauth_token"] == CREDENTIALS


def test_what_is_set_to_nothing_is_not_set_of_what_may_be_left_out() -> None:
    """librdkafka has the empty text for none, and Java's clients leave an empty scope out."""
    empty = {"sasl.oauthbearer.scope": "", "sasl.oauthbearer.expected.audience": " ", "https.ca.location": ""}
    found = options({**OAUTH, **FAMILIES[0], **empty})["sasl_oauth_token"]
    assert (found.scope, found.expected_audience, found.cafile) == (None, None, None)
    module = f'{MODULE} required clientId="me" clientSecret="hunter2" scope="";'
    found = options({**OAUTH, "sasl.oauthbearer.token.endpoint.url": URL, "sasl.jaas.config": module})
    assert found["sasl_oauth_token"].scope is None


def test_times_of_a_login_are_read() -> None:
    found = options(
        {
            **OAUTH,
            **FAMILIES[0],
            "https.ca.location": "/ca.pem",
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.clock.skew.seconds": "5",
            "sasl.login.connect.timeout.ms": "1500",
            "sasl.login.read.timeout.ms": "2500",
            "sasl.login.retry.backoff.ms": "50",
            "sasl.login.retry.backoff.max.ms": "7000",
            "sasl.login.refresh.window.factor": "0.7",
            "sasl.login.refresh.window.jitter": "0.1",
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "2",
        }
    )
    token = found["sasl_oauth_token"]
    assert (token.cafile, token.expected_audience, token.clock_skew) == ("/ca.pem", "kafka", 5)
    times = (token.connect_timeout, token.read_timeout, token.retry_backoff, token.retry_backoff_max)
    assert times == (1.5, 2.5, 0.05, 7)
    assert found["sasl_oauth_refresh"] == TokenRefresh(0.7, 0.1, 1, 2)


def test_a_callback_as_confluent_kafka_has_it_gives_the_token() -> None:
    asked: list[str] = []

    def oauth_cb(config: str) -> tuple[Any, ...]:
        asked.append(config)
        return given

    found = options({**OAUTH, "oauth_cb": oauth_cb, "sasl.oauthbearer.config": "scope=kafka"})
    token: Callable[[], OAuthToken] = found["sasl_oauth_token"]
    given: tuple[Any, ...] = ("a.b.c", 1000.5)
    assert token() == OAuthToken("a.b.c", 1000.5)
    given = ("a.b.c", 1000, "alice", {"logicalCluster": "lkc-1"})
    assert token() == OAuthToken("a.b.c", 1000.0, {"logicalCluster": "lkc-1"})
    assert asked == ["scope=kafka"] * 2
    wrong: list[Any] = [("hunter2",), ("hunter2", "soon"), "hunter2"]
    for given in wrong:  # noqa: B007
        with pytest.raises(TokenError, match="oauth_cb: ") as caught:
            token()
        assert "hunter" not in str(caught.value)
    Client({**BOOTSTRAP, **OAUTH, "oauth_cb": oauth_cb})
    with pytest.raises(ConfigError, match="oauth_cb: needs a function, not str"):
        options({**OAUTH, "oauth_cb": "hunter2"})


def test_a_function_that_is_named_is_imported_where_the_token_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = options({**OAUTH, HANDLER: "tokens_of_ours:Source.token"})
    assert "tokens_of_ours" not in sys.modules
    with pytest.raises(TokenError, match=r"tokens_of_ours:Source\.token: ModuleNotFoundError"):
        found["sasl_oauth_token"]()
    module: Any = ModuleType("tokens_of_ours")
    monkeypatch.setitem(sys.modules, "tokens_of_ours", module)
    with pytest.raises(TokenError, match="AttributeError"):
        found["sasl_oauth_token"]()

    class Source:
        @staticmethod
        def token() -> str:
            return "a.b.c"

    module.Source = Source
    assert found["sasl_oauth_token"]() == "a.b.c"


def test_kerberos_comes_in_each_family(tmp_path: Path) -> None:
    keytab = tmp_path / "alice.keytab"
    wanted = {
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "events",
        "sasl_kerberos_principal": "alice@EXAMPLE",
        "sasl_kerberos_keytab": str(keytab),
    }
    assert wanted == options(
        {
            "sasl.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "events",
            "sasl.kerberos.principal": "alice@EXAMPLE",
            "sasl.kerberos.keytab": str(keytab),
        }
    )
    module = KERBEROS.format(keytab, 'principal="alice@EXAMPLE" serviceName="events"')
    assert wanted == options({"sasl.jaas.config": module})
    cached = KERBEROS.format(keytab, 'principal="alice@EXAMPLE"').replace("useKeyTab=true", "useTicketCache=true")
    assert "sasl_kerberos_keytab" not in options({"sasl.jaas.config": cached})


def test_security_has_kerberos_with_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))
    keytab = tmp_path / "k"
    keytab.touch()
    security = Security(
        "SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="events",
        sasl_kerberos_domain_name="kafka.example",
        sasl_kerberos_principal="alice",
        sasl_kerberos_keytab=keytab,
    )
    assert security._kerberos == Kerberos("events", "kafka.example", "alice", keytab)
    assert Security("SASL_PLAINTEXT", sasl_mechanism="GSSAPI")._kerberos == Kerberos()
    assert security.mechanism("kafka-1").mechanism == "GSSAPI"
    with pytest.raises(ConfigError, match="sasl_plain_username: has no effect with sasl_mechanism=GSSAPI"):
        Security("SASL_PLAINTEXT", sasl_mechanism="GSSAPI", sasl_plain_username="alice")


REFUSED = [
    ({"sasl.jaas.config": "x.OtherLoginModule required a=hunter2;"}, "OtherLoginModule: allowed is PlainLoginModule"),
    ({"sasl.jaas.config": "x.ScramLoginModule required username=a;"}, "ScramLoginModule needs username and password"),
    (
        {"sasl.jaas.config": "x.ScramLoginModule required username=a password=hunter2 tokenauth=true;"},
        "delegation tokens cannot be logged in with",
    ),
    ({"sasl.jaas.config": "x.Krb5LoginModule required useKeyTab=true;"}, "useKeyTab=true needs keyTab"),
    ({"sasl.jaas.config": 'x.Krb5LoginModule required ticketCache="/c";'}, "ticketCache: the variable KRB5CCNAME"),
    ({**OAUTH, "sasl.oauthbearer.token.endpoint.url": URL}, r"sasl\.oauthbearer\..*client\.id: missing"),
    ({**OAUTH, "sasl.jaas.config": f"{MODULE} required clientId=me clientSecret=hunter2;"}, "endpoint.url: missing"),
    (
        {**OAUTH, **FAMILIES[0], "sasl.oauthbearer.token.endpoint.url": "hunter2"},
        r"sasl\.oauthbearer\.\*: token_endpoint_url: needs http",
    ),
    ({**OAUTH, **FAMILIES[0], "sasl.oauthbearer.grant.type": "password"}, "allowed is client_credentials"),
    ({**OAUTH, **FAMILIES[0], "sasl.oauthbearer.extensions": "hunter2"}, "extensions: needs name=value"),
    ({**OAUTH, **FAMILIES[0], "sasl.oauthbearer.clock.skew.seconds": "soon"}, "skew.seconds=soon: needs a number"),
    ({**OAUTH, **FAMILIES[0], "sasl.login.refresh.window.factor": "9"}, r"sasl\.login\.refresh\.\*: window_factor"),
    ({**OAUTH, **FAMILIES[0], **FAMILIES[2], "sasl.oauthbearer.client.id": "other"}, "and differently"),
    ({**OAUTH, HANDLER: "com.example.Handler"}, "a class of Java's cannot be called; give a function of Python's"),
    ({"enable.ssl.certificate.verification": "perhaps"}, "verification=perhaps: allowed is true or false"),
    ({"ssl.keystore.key": "hunter2"}, r"ssl\.keystore\.key: only PEM can be read"),
    ({"sasl.oauthbearer.client.secert": "hunter2"}, r"sasl\.oauthbearer\.client\.secret is one"),
]


@pytest.mark.parametrize(("properties", "why"), REFUSED)
def test_what_is_wrong_is_told_by_the_name_of_the_property_without_a_secret(
    properties: dict[str, str], why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        options(properties)
    assert "hunter2" not in f"{caught.value}"


def test_what_is_set_for_tokens_changes_nothing_of_other_mechanisms() -> None:
    plain = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "hunter2"}
    assert options({**plain, **FAMILIES[0]}) == options(plain)


# Certificates as text ------------------------------------------------------------------------------------------------


def texts(certificates: Certificates) -> tuple[str, str, str]:
    """Authority, certificate and key."""
    both = certificates.client.read_text()
    at = both.index("-----BEGIN CERTIFICATE")
    return certificates.authority.read_text(), both[at:], both[:at]


def families(certificates: Certificates) -> list[dict[str, str]]:
    authority, chain, key = texts(certificates)
    return [
        {"ssl.ca.pem": authority, "ssl.certificate.pem": chain, "ssl.key.pem": key},
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": key,
        },
    ]


@pytest.mark.parametrize("family", [0, 1], ids=["librdkafka", "Java"])
def test_certificates_may_stand_in_properties(certificates: Certificates, family: int) -> None:
    with FakeCluster(tls=certificates.server(mutual=True)) as cluster:
        given = {"bootstrap.servers": cluster.bootstrap, "security.protocol": "SSL", **families(certificates)[family]}
        with Client(given) as client:
            assert client.metadata().cluster_id == "fake"


def test_certificates_may_have_comments_in_any_language(certificates: Certificates) -> None:
    comment = "# F\u0151tan\u00fas\u00edtv\u00e1ny \udc80\n"
    authority, chain, key = (comment + text for text in texts(certificates))
    with FakeCluster(tls=certificates.server(mutual=True)) as cluster:
        own = {"ssl_ca_pem": authority, "ssl_certificate_pem": chain, "ssl_key_pem": key}
        with Client(cluster.bootstrap, security_protocol="SSL", **own) as client:  # type: ignore[arg-type]
            assert client.metadata().cluster_id == "fake"


def test_a_broker_is_believed_that_nobody_vouches_for_where_that_is_asked_for(certificates: Certificates) -> None:
    with FakeCluster(tls=certificates.server(certificates.elsewhere)) as cluster:
        given = {"bootstrap.servers": cluster.bootstrap, "security.protocol": "SSL"}
        with Client({**given, "enable.ssl.certificate.verification": "false"}) as client:
            assert client.metadata().cluster_id == "fake"


def test_wrong_certificates_are_told_without_their_text(certificates: Certificates) -> None:
    authority, chain, key = texts(certificates)
    unlocked = load_pem_private_key(key.encode(), None)
    locked_key = unlocked.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"alice")).decode()
    locked = {"ssl_certificate_pem": chain, "ssl_key_pem": locked_key}
    wrong = [
        ({"ssl_ca_pem": "hunter2"}, "ssl_ca_pem: "),
        ({"ssl_ca_pem": "h\u00fcnter2"}, "ssl_ca_pem: "),
        ({"ssl_ca_pem": authority, "ssl_cafile": "/x"}, "ssl_ca_pem: has no effect beside ssl_cafile"),
        ({"ssl_certificate_pem": chain}, "ssl_certificate_pem: "),
        ({"ssl_certificate_pem": chain, "ssl_key_pem": key[:-200]}, "ssl_certificate_pem: "),
        ({"ssl_key_pem": key}, "ssl_key_pem: has no effect without ssl_certificate_pem"),
        ({"ssl_key_pem": "k" * (1 << 21), "ssl_certificate_pem": chain}, "ssl_key_pem: has 2097152 characters"),
        ({"ssl_verify": "no"}, "ssl_verify: needs True or False"),
        ({"ssl_ca_pem": "é"}, "ssl_ca_pem: "),
        ({"ssl_certificate_pem": f"{chain}\ud800"}, "ssl_certificate_pem: "),
        ({**locked, "ssl_password": "x" * 1025}, "ssl_certificate_pem: password cannot be longer"),
        ({**locked, "ssl_password": "hunter\ud800"}, "ssl_certificate_pem: surrogates not allowed"),
    ]
    for given, why in wrong:
        with pytest.raises(ConfigError) as caught:
            Security("SSL", **given)  # type: ignore[arg-type]
        assert str(caught.value).startswith(why)
        assert len(str(caught.value)) < 200
        assert key[40:80] not in str(caught.value)
        assert "d800" not in str(caught.value)


def test_no_repr_has_a_key(certificates: Certificates) -> None:
    _, chain, key = texts(certificates)
    assert key[40:80] not in repr(Security("SSL", ssl_certificate_pem=chain, ssl_key_pem=key))

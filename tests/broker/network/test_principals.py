"""Who a client is by its certificate: the name as Java writes it, and rules that map it (KIP-371)."""

from __future__ import annotations

import ssl
import time

import pytest
import trustme

from tagwire.broker import Broker, Cluster, Listener, Tls
from tagwire.broker.network.bounded_regex import MOST_STEPS, BoundedRegex, Steps, TooLongError
from tagwire.broker.network.distinguished_names import subject_of
from tagwire.broker.network.principal_mapping import PrincipalMapping
from tagwire.client import Client
from tagwire.errors import AuthenticationError, ConfigError, TagwireError

# The DER of names, and what OpenJDK 17 gives for them: X500Principal.getEncoded and getName.
JAVA = [
    (
        "303d310b3009060355040613025553310e300c060355040a0c057122725c73310c300a060355040b13037820793110300e06035504030c07"
        "613d6223632c64",
        r"CN=a\=b\#c\,d,OU=x y,O=q\"r\\s,C=US",
    ),
    (
        "30818c310a30080603550405130139310e300c060355040c13057469746c65"
        "3114301206092a864886f70d01090116056140622e6331133011060a0992268993f22c64011916036f7267310a3008060355040713016c31"
        "0a30080603550408130174310a30080603550409130173311f300c06035504030c05c3bc6ec3af300f060a0992268993f22c640101130137",
        "CN=ünï+UID=7,STREET=s,ST=t,L=l,DC=org,1.2.840.113549.1.9.1=#16056140622e63,2.5.4.12=#13057469746c65,"
        "2.5.4.5=#130139",
    ),
    (
        "302931143012060355040a130b74776f20207370616365733111300f06035504030c0801746162096e6577",
        "CN=\x01tab\tnew,O=two  spaces",
    ),
    ("300b3109300706035504031300", "CN="),
]


def element(tag, content):
    size = len(content)
    return bytes((tag, size) if size < 128 else (tag, 0x82, size >> 8, size & 255)) + content


def certificate_of(name):
    """As much of one as its subject needs."""
    fields = element(0xA0, b"\x02\x01\x02") + element(2, b"\x07") + 3 * element(0x30, b"") + name + element(0x30, b"")
    return element(0x30, element(0x30, fields) + element(0x30, b"") + element(3, b"\0"))


@pytest.mark.parametrize(("name", "text"), JAVA, ids=lambda each: each[:12])
def test_a_name_is_as_java_writes_it(name, text):
    assert subject_of(certificate_of(bytes.fromhex(name))) == text


def test_spaces_at_either_end_are_escaped():
    value = element(0x0C, b" a b  ")
    name = element(0x30, element(0x31, element(0x30, element(6, b"\x55\x04\x03") + value)))
    assert subject_of(certificate_of(name)) == r"CN=\ a b\ \ "


def test_what_is_no_certificate_is_refused():
    good = certificate_of(bytes.fromhex(JAVA[0][0]))
    for size in range(len(good)):
        with pytest.raises(ValueError):
            subject_of(good[:size])
    for data in (b"\x30\x84\xff\xff\xff\xff", b"\x30\x80", b"\0" * (1 << 17), element(0x30, element(0x30, b""))):
        with pytest.raises(ValueError):
            subject_of(data)


RULES = [
    ("DEFAULT", "CN=Duke,OU=ServiceUsers,O=Org", "CN=Duke,OU=ServiceUsers,O=Org"),
    ("", "CN=Duke", None),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", "CN=Duke,OU=ServiceUsers,O=Org,C=US", "DUKE"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L", "CN=Duke,OU=S,O=O,L=U,ST=U,C=US", "duke@s"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "cn=duke,OU=S", "DUKE"),
    ("RULE:^CN=(.*?),.*$/$1/, DEFAULT", "OU=S,CN=Duke", "OU=S,CN=Duke"),
    ("RULE:^OU=(.*?),.*$/$1/, RULE:^CN=(.*?),.*$/$1/L", "CN=Duke,OU=S", "duke"),
    ("RULE:^OU=(.*?),.*$/$1/", "CN=Duke,OU=S", None),
    (r"RULE:^CN=(.*?)\/x,.*$/$1\/y/", "CN=Duke/x,O=Org", "Duke/y"),
    ("RULE:^CN=(.*?),OU=(.*?)$/$1@$9$12/", "CN=Duke,OU=S", "Duke@$9Duke2"),
    ("RULE:^(?:CN|UID)=([^,+]{1,8})(,.*)?$/$1/", "UID=duke", "duke"),
    ("RULE:CN=(.*?)/$1/", "CN=Duke", "Duke"),  # replaced where it is found: nothing, and the rest stays
    ("RULE:(a|b)*/[$0]/", "abab", "[abab][]"),
    ("RULE:^CN=(.*)$/$1-$0/", "CN=x", "x-CN=x"),
    # Classes are of ASCII in Java, and a dot takes no end of a line.
    (r"RULE:^CN=(\w+)$/$1/, DEFAULT", "CN=Jürgen", "CN=Jürgen"),
    (r"RULE:^CN=(\d+)$/$1/, DEFAULT", "CN=\u0661", "CN=\u0661"),
    (r"RULE:^CN=([\w]+)\W$/$1/, DEFAULT", "CN=bé", "b"),
    ("RULE:^CN=(.*)$/$1/, DEFAULT", "CN=a\u2028b", "CN=a\u2028b"),
    (r"RULE:^CN=([&\[a]+)$/$1/", "CN=[a&", "[a&"),
]


@pytest.mark.parametrize(("rules", "name", "principal"), RULES)
def test_rules_map_as_kafkas_do(rules, name, principal):
    if principal is None:
        with pytest.raises(AuthenticationError, match="no rule"):
            PrincipalMapping(rules).principal(name)
    else:
        assert PrincipalMapping(rules).principal(name) == principal


BAD_RULES = [
    "RULE:^CN=(.*?)",
    "RULE:^CN=(.*?),.*$/$1",
    "RULE:^CN=(.*?,.*$/$1/",
    "RULE:a/b/X",
    "DEFAULT and more",
    "default",
    r"RULE:(a)\1/b/",
    "RULE:(?=a)/b/",
    "RULE:(?i)a/b/",
    "RULE:a++/b/",
    "RULE:[a-z&&x]/b/",  # in Java an intersection
    "RULE:[a[b]/c/",  # and a set within one
    "RULE:(a{1000}){1000}/b/",
    f"RULE:{'(' * 450}a{')' * 450}/b/",
    f"RULE:{'a' * 1001}/b/",
    "R" * 10_001,
]


@pytest.mark.parametrize("rules", BAD_RULES, ids=lambda rules: rules[:20])
def test_what_is_no_rule_is_named(rules):
    with pytest.raises(ConfigError, match="tls principal_mapping_rules"):
        PrincipalMapping(rules)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*)(.*)(.*)(.*)(.*)x$", "(a?){30}a{30}b"])
def test_no_expression_takes_long_whatever_the_name(pattern):
    began = time.monotonic()
    for size in (30, 300, 3000):
        try:
            assert BoundedRegex(pattern).match("a" * size + "!", Steps(), whole=True) is None
        except TooLongError:
            assert size > 30
    assert time.monotonic() - began < 20  # each at most so many steps
    assert MOST_STEPS == 200_000


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """PEM files by name: an authority, a broker's and a client's certificates."""
    folder = tmp_path_factory.mktemp("people")
    authority, stranger = trustme.CA(), trustme.CA()
    made = {name: folder / f"{name}.pem" for name in ("authority", "broker", "alice", "eve")}
    authority.cert_pem.write_to_path(made["authority"])
    for name, by in (("broker", authority), ("alice", authority), ("eve", stranger)):
        issued = by.issue_cert("127.0.0.1", common_name=name, organization_name="Wonder, Land")
        issued.private_key_and_cert_chain_pem.write_to_path(made[name])
    return made


RULE = r"RULE:^(?:.*,)?CN=([^,]+)(?:,.*)?$/$1/U,DEFAULT"


def user(broker, people, certificate=None):
    """Who the broker took a client for; None where it did not let it in."""
    context = ssl.create_default_context(cafile=str(people["authority"]))
    if certificate is not None:
        context.load_cert_chain(people[certificate])
    before = broker.requests.count("Metadata")
    try:
        with Client(broker.bootstrap, security_protocol="SSL", ssl_context=context, timeout=2.0) as client:
            client.metadata()
    except TagwireError:
        assert broker.requests.count("Metadata") == before
        return None
    return broker.requests.select("Metadata")[-1].user


def test_a_client_with_a_certificate_is_whom_it_names(people):
    with Broker(tls=Tls(people["broker"], client_ca=people["authority"])) as broker:
        named = user(broker, people, "alice")
        assert named.startswith("CN=alice,")
        assert r"O=Wonder\, Land" in named
        assert user(broker, people) is None
        assert user(broker, people, "eve") is None


def test_rules_say_what_a_client_is_called_and_who_has_no_certificate_is_nobody(people):
    tls = Tls(people["broker"], client_ca=people["authority"], client_auth="requested", principal_mapping_rules=RULE)
    with Broker(tls=tls) as broker:
        assert user(broker, people, "alice") == "ALICE"
        assert user(broker, people) == ""
        assert user(broker, people, "eve") is None


def test_whom_no_rule_is_for_is_not_let_in(people, caplog):
    rules = "RULE:^CN=bob,.*$/bob/"
    with Broker(tls=Tls(people["broker"], client_ca=people["authority"], principal_mapping_rules=rules)) as broker:
        assert user(broker, people, "alice") is None
    assert "closed: no rule of ssl.principal.mapping.rules is for the certificate's name" in caplog.text


def test_where_a_password_is_asked_for_that_says_who_a_client_is(people):
    tls = Tls(people["broker"], client_ca=people["authority"])
    login = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "bob", "sasl_plain_password": "builder"}
    context = ssl.create_default_context(cafile=str(people["authority"]))
    context.load_cert_chain(people["alice"])
    with (
        Broker(listeners=Listener(tls=tls, sasl=("PLAIN",)), users={"bob": "builder"}) as broker,
        Client(broker.bootstrap, security_protocol="SASL_SSL", ssl_context=context, **login) as client,
    ):
        client.metadata()
        assert broker.requests.select("Metadata")[-1].user == "bob"


def test_each_node_of_a_cluster_maps_certificates(people):
    tls = Tls(people["broker"], client_ca=people["authority"], principal_mapping_rules=RULE)
    with Cluster(2, tls=tls) as cluster:
        for node in cluster.nodes.values():
            assert user(node, people, "alice") == "ALICE"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"client_auth": "maybe"}, "tls client_auth='maybe' is not required or requested"),
        ({"client_auth": "required"}, "tls client_auth: needs client_ca"),
        ({"principal_mapping_rules": "RULE:x"}, "tls principal_mapping_rules: 'RULE:x' is not RULE:pattern"),
    ],
)
def test_what_is_wrong_is_named(people, options, said):
    with pytest.raises(ConfigError) as caught:
        Tls(people["broker"], **options)
    assert said in str(caught.value)

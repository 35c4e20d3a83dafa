"""The properties of Java's clients and of librdkafka that protect a connection, as options of our client.

| property | option |
|----------|--------|
| security.protocol, sasl.mechanism(s) | security_protocol, sasl_mechanism |
| sasl.username, sasl.password | sasl_plain_username, sasl_plain_password |
| sasl.jaas.config | the same two, out of PlainLoginModule or ScramLoginModule; those below of the other two |
| sasl.oauthbearer.*, sasl.login.*, oauth_cb; OAuthBearerLoginModule | see `tagwire.client.oauth_properties` |
| sasl.kerberos.service.name; serviceName of Krb5LoginModule | sasl_kerberos_service_name |
| sasl.kerberos.principal; principal of Krb5LoginModule | sasl_kerberos_principal |
| sasl.kerberos.keytab; keyTab of Krb5LoginModule, with useKeyTab=true | sasl_kerberos_keytab |
| ssl.ca.location; ssl.truststore.location with ssl.truststore.type=PEM | ssl_cafile |
| ssl.certificate.location; ssl.keystore.location with ssl.keystore.type=PEM | ssl_certfile |
| ssl.key.location, ssl.key.password | ssl_keyfile, ssl_password |
| ssl.ca.pem; ssl.truststore.certificates | ssl_ca_pem |
| ssl.certificate.pem; ssl.keystore.certificate.chain | ssl_certificate_pem |
| ssl.key.pem; ssl.keystore.key | ssl_key_pem |
| ssl.endpoint.identification.algorithm | ssl_check_hostname: https, or empty or "none" for no check |
| enable.ssl.certificate.verification | ssl_verify: false believes every broker |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tagwire.client.jaas import JAAS, LoginModule, login_module
from tagwire.client.oauth_properties import READ as OAUTH
from tagwire.client.oauth_properties import oauth_options
from tagwire.client.property_values import contradicts
from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.rpc.gssapi import GSSAPI
from tagwire.rpc.oauthbearer import OAUTHBEARER

_OPTIONS: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.kerberos.principal": "sasl_kerberos_principal",
    "sasl.kerberos.keytab": "sasl_kerberos_keytab",
    "ssl.ca.location": "ssl_cafile",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.ca.pem": "ssl_ca_pem",
    "ssl.truststore.certificates": "ssl_ca_pem",
    "ssl.certificate.pem": "ssl_certificate_pem",
    "ssl.keystore.certificate.chain": "ssl_certificate_pem",
    "ssl.key.pem": "ssl_key_pem",
    "ssl.keystore.key": "ssl_key_pem",
}
_WORDS: Final = ("security_protocol", "sasl_mechanism")
_STORE_TYPES: Final = {
    "ssl.truststore.location": "ssl.truststore.type",
    "ssl.truststore.certificates": "ssl.truststore.type",
    "ssl.keystore.location": "ssl.keystore.type",
    "ssl.keystore.certificate.chain": "ssl.keystore.type",
    "ssl.keystore.key": "ssl.keystore.type",
}
_HOSTNAME: Final = "ssl.endpoint.identification.algorithm"
_VERIFICATION: Final = "enable.ssl.certificate.verification"
_PASSWORD_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
_OAUTH_MODULE: Final = "OAuthBearerLoginModule"
_KERBEROS_MODULE: Final = "Krb5LoginModule"

READ: Final[frozenset[str]] = frozenset({*_OPTIONS, *_STORE_TYPES.values(), JAAS, _HOSTNAME, _VERIFICATION, *OAUTH})


def security_options(properties: Mapping[str, str], oauth_cb: object = None) -> dict[str, Any]:
    """The options that `properties` give; the rest of them is left alone.

    Args:
        oauth_cb: the property of that name, which is no text.

    Raises:
        ConfigError: naming the property, never a secret.
    """
    found: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        if name in properties:
            value = properties[name]
            _set(found, option, value.strip().upper() if option in _WORDS else value, name)
    for name, kind in _STORE_TYPES.items():
        if name in properties and properties.get(kind, "JKS").strip().upper() != "PEM":
            what = "PEM files" if name.endswith("location") else "PEM"
            raise ConfigError(f"{name}: only {what} can be read; give that, and {kind}=PEM")
    if _HOSTNAME in properties:
        algorithm = properties[_HOSTNAME].strip().lower()
        if algorithm not in ("https", "", "none"):
            raise ConfigError(f"{_HOSTNAME}={told(algorithm, 80)}: allowed is https, or nothing")
        if algorithm != "https":
            found["ssl_check_hostname"] = False
    if _VERIFICATION in properties:
        verified = properties[_VERIFICATION].strip().lower()
        if verified not in ("true", "false"):
            raise ConfigError(f"{_VERIFICATION}={told(verified, 80)}: allowed is true or false")
        if verified == "false":
            found["ssl_verify"] = False
    module = login_module(properties[JAAS].strip()) if JAAS in properties else None
    if module is not None:
        for option, value in _of_module(module).items():
            _set(found, option, value, JAAS)
    if "sasl_mechanism" not in found and any(name.startswith("sasl_kerberos_") for name in found):
        found["sasl_mechanism"] = GSSAPI  # as it is by default with Java's clients and librdkafka
    is_oauth = found.get("sasl_mechanism") == OAUTHBEARER
    if is_oauth:  # what is set for it changes nothing of other mechanisms, as with Java's clients
        found |= oauth_options(properties, module, oauth_cb)
    return found


def _set(found: dict[str, Any], option: str, value: str, name: str) -> None:
    """Takes what a property says of an option. Raises ConfigError where another has said something else."""
    if found.setdefault(option, value) != value:
        others = ", ".join(other for other, sets in _OPTIONS.items() if sets == option and other != name)
        raise contradicts(name, others)


def _of_module(module: LoginModule) -> dict[str, Any]:
    options = module.options
    if module.name in _PASSWORD_MODULES:
        if options.get("tokenauth", "false").lower() != "false":
            raise ConfigError(f"{JAAS}: tokenauth: delegation tokens cannot be logged in with")
        if not options.get("username") or not options.get("password"):
            raise ConfigError(f"{JAAS}: {module.name} needs username and password")
        return {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"]}
    if module.name == _KERBEROS_MODULE:
        return _of_kerberos(options)
    if module.name != _OAUTH_MODULE:
        allowed = ", ".join((*_PASSWORD_MODULES, _OAUTH_MODULE))
        raise ConfigError(f"{JAAS}: {told(module.name, 80)}: allowed is {allowed} or {_KERBEROS_MODULE}")
    return {}


def _of_kerberos(options: Mapping[str, str]) -> dict[str, Any]:
    if "ticketCache" in options:
        raise ConfigError(f"{JAAS}: ticketCache: the variable KRB5CCNAME says where tickets are")
    found = {}
    names = {"serviceName": "sasl_kerberos_service_name", "principal": "sasl_kerberos_principal"}
    if options.get("useKeyTab", "false").lower() == "true":
        if not options.get("keyTab"):
            raise ConfigError(f"{JAAS}: useKeyTab=true needs keyTab")
        names["keyTab"] = "sasl_kerberos_keytab"
    for name, option in names.items():
        if options.get(name):
            found[option] = options[name]
    return found

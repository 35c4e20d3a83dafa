"""The properties of Java's clients and of librdkafka that protect a connection, as options of our client.

| property | option |
|----------|--------|
| security.protocol, sasl.mechanism(s) | security_protocol, sasl_mechanism |
| sasl.username, sasl.password | sasl_plain_username, sasl_plain_password |
| sasl.jaas.config | the same two, out of PlainLoginModule or ScramLoginModule |
| ssl.ca.location; ssl.truststore.location with ssl.truststore.type=PEM | ssl_cafile |
| ssl.certificate.location; ssl.keystore.location with ssl.keystore.type=PEM | ssl_certfile |
| ssl.key.location, ssl.key.password | ssl_keyfile, ssl_password |
| ssl.endpoint.identification.algorithm | ssl_check_hostname: https, or empty or "none" for no check |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tagwire.errors import ConfigError

_OPTIONS: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_STORE_TYPES: Final = {
    "ssl.truststore.location": "ssl.truststore.type",
    "ssl.keystore.location": "ssl.keystore.type",
}
_JAAS: Final = "sasl.jaas.config"
_HOSTNAME: Final = "ssl.endpoint.identification.algorithm"
_LOGIN: Final = re.compile(r"[\w.]*(?:PlainLoginModule|ScramLoginModule)\s+required\s+(.*?)\s*;?", re.DOTALL)
_LOGIN_OPTION: Final = re.compile(r'\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))', re.DOTALL)

READ: Final = frozenset({*_OPTIONS, *_STORE_TYPES.values(), _JAAS, _HOSTNAME})


def security_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """The options that `properties` give; the rest of them is left alone.

    Raises:
        ConfigError: naming the property, never a secret.
    """
    found: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        if name in properties:
            value = str(properties[name])
            found[option] = value.strip().upper() if option in ("security_protocol", "sasl_mechanism") else value
    for name, kind in _STORE_TYPES.items():
        if name in properties and str(properties.get(kind, "JKS")).strip().upper() != "PEM":
            raise ConfigError(f"{name}: only PEM files can be read; give one, and {kind}=PEM")
    if _HOSTNAME in properties:
        algorithm = str(properties[_HOSTNAME]).strip().lower()
        if algorithm not in ("https", "", "none"):
            raise ConfigError(f"{_HOSTNAME}={algorithm}: allowed is https, or nothing")
        if algorithm != "https":
            found["ssl_check_hostname"] = False
    if _JAAS in properties:
        found.update(_login(str(properties[_JAAS]).strip()))
    return found


def _login(text: str) -> dict[str, str]:
    match = _LOGIN.fullmatch(text)
    options = {}
    if match is not None:
        for name, quoted, bare in _LOGIN_OPTION.findall(match[1]):
            options[name] = re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
    if not options.get("username") or not options.get("password"):
        # The value stays untold: it holds a password.
        raise ConfigError(f"{_JAAS}: needs PlainLoginModule or ScramLoginModule with username and password")
    return {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"]}

"""Confluent's properties of a registry's client, text to checked settings: those of its Java client and its Python one.

| property | what it sets |
|----------|--------------|
| schema.registry.url, url | base URLs, separated by commas |
| basic.auth.credentials.source | USER_INFO, URL or SASL_INHERIT |
| basic.auth.user.info | USER:PASSWORD |
| bearer.auth.credentials.source | STATIC_TOKEN |
| bearer.auth.token, bearer.auth.logical.cluster, bearer.auth.identity.pool.id | of a bearer |
| ssl.ca.location; ssl.truststore.location with ssl.truststore.type=PEM; ssl.truststore.certificates | what is trusted |
| ssl.certificate.location; ssl.keystore.location with ssl.keystore.type=PEM | the client's certificate |
| ssl.key.location, ssl.key.password | its key |
| ssl.endpoint.identification.algorithm | https, or empty for no check of the host's name |
| enable.ssl.certificate.verification | false checks no certificate |
| http.connect.timeout.ms, http.read.timeout.ms | of one connection |
| timeout | seconds of silence that are allowed, as the Python client has it |
| request.timeout.ms | of a request with all its retries |
| max.retries, retries.wait.ms, retries.max.wait.ms | how often it is tried again, and when |
| proxy; proxy.host, proxy.port | what requests go through |
| cache.capacity | schemas that are kept |
| max.response.bytes | the largest response that is taken |

Each is read with `schema.registry.` before it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from tagwire.errors import ConfigError
from tagwire.escaping import told
from tagwire.suggestions import did_you_mean
from tagwire.values.registry.settings import MIB, RegistrySettings

PREFIX: Final = "schema.registry."
_MAX_INT: Final = 2**31 - 1


def registry_settings(properties: Mapping[str, str]) -> RegistrySettings:
    """The settings that `properties` give.

    Raises:
        ConfigError: naming the property and what is allowed; never a secret.
    """
    given = _named(properties)
    found: dict[str, Any] = {}
    for name, (option, read) in _READ.items():
        if name in given:
            found[option] = read(name, given[name].strip())
    if not found.get("urls"):
        raise ConfigError(f"{PREFIX}url: missing; give the registry as http://HOST:PORT")
    found["urls"], from_url = _without_credentials(found["urls"])
    found.update(_authentication(given, from_url))
    found.update(_tls(given))
    found["proxy"] = _proxy(given)
    return RegistrySettings(**found)


def is_registry_property(name: str) -> bool:
    """Whether a name is one of a registry's client, with its prefix or without."""
    return name.startswith(PREFIX) or name in NAMES


def registry_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """What of a Kafka client's properties is about its registry. Without the prefix that is `basic.auth.*` and
    `bearer.auth.*` alone, and `sasl.*` where the registry inherits them: `ssl.*` is the brokers', as in Java."""
    found = {
        name: value
        for name, value in properties.items()
        if name.startswith(PREFIX) or (name in NAMES and name.startswith(("basic.auth.", "bearer.auth.")))
    }
    source = "basic.auth.credentials.source"
    if found.get(PREFIX + source, found.get(source, "")).strip().upper() == "SASL_INHERIT":
        for name in ("sasl.username", "sasl.password"):
            if name in properties:
                found.setdefault(name, properties[name])
    return found


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    """By the names without the prefix, which goes before the same without."""
    found: dict[str, str] = {}
    for given, value in properties.items():
        name = given.removeprefix(PREFIX)
        if name not in NAMES:
            raise ConfigError(f"{told(given)}: no property of a schema registry's client{did_you_mean(name, NAMES)}")
        if name not in found or given.startswith(PREFIX):
            found[name] = str(value)
    return found


def _without_credentials(urls: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """The URLs without what stands before an @ in them, and that."""
    bare, credentials = [], None
    for url in urls:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ConfigError(f"{PREFIX}url: needs http://HOST:PORT, or https") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(f"{PREFIX}url: needs http://HOST:PORT, or https, without a query")
        if parts.username is not None:
            found = unquote(parts.username), unquote(parts.password or "")
            if credentials not in (None, found):
                raise ConfigError(f"{PREFIX}url: its URLs have different credentials; give basic.auth.user.info")
            credentials = found
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        netloc = host if port is None else f"{host}:{port}"
        bare.append(urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", "")))
    return tuple(bare), credentials


def _authentication(given: Mapping[str, str], from_url: tuple[str, str] | None) -> dict[str, str | None]:
    source = given.get("basic.auth.credentials.source", "").strip().upper()
    info = given.get("basic.auth.user.info", "").strip()
    bearer = given.get("bearer.auth.credentials.source", "").strip().upper()
    token = given.get("bearer.auth.token", "").strip()
    if source not in ("", "USER_INFO", "URL", "SASL_INHERIT"):
        raise ConfigError(f"basic.auth.credentials.source={told(source)}: allowed is USER_INFO, URL or SASL_INHERIT")
    if bearer not in ("", "STATIC_TOKEN"):
        raise ConfigError(f"bearer.auth.credentials.source={told(bearer)}: allowed is STATIC_TOKEN")
    if source == "SASL_INHERIT":
        pair: tuple[str, str] | None = given.get("sasl.username", ""), given.get("sasl.password", "")
        if not all(pair or ()):
            raise ConfigError("basic.auth.credentials.source=SASL_INHERIT: needs sasl.username and sasl.password")
    elif info and source != "URL":
        user, colon, password = info.partition(":")
        if not colon:
            raise ConfigError("basic.auth.user.info: needs USER:PASSWORD")
        pair = user, password
        if from_url not in (None, pair):
            raise ConfigError(f"basic.auth.user.info: {PREFIX}url has other credentials; give one of the two")
    else:
        pair = from_url
        if source and pair is None:
            needed = "basic.auth.user.info" if source == "USER_INFO" else "USER:PASSWORD@ in schema.registry.url"
            raise ConfigError(f"basic.auth.credentials.source={source}: needs {needed}")
    if bearer and not token:
        raise ConfigError("bearer.auth.credentials.source=STATIC_TOKEN: needs bearer.auth.token")
    if token and pair is not None:
        raise ConfigError("bearer.auth.token: given beside basic authentication; give one of the two")
    if re.search(r"[\x00-\x20\x7f]|[^\x00-\xff]", token):
        raise ConfigError("bearer.auth.token: has characters that no token has")
    return {"user": pair[0] if pair else None, "password": pair[1] if pair else None, "token": token or None}


def _proxy(given: Mapping[str, str]) -> str | None:
    url, host, port = (given.get(name, "").strip() for name in ("proxy", "proxy.host", "proxy.port"))
    if host and not url:
        url = f"http://{host}:{port or 80}"
    if not url:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("proxy: needs http://HOST:PORT")
    return url


def _tls(given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for store, option in (("truststore", "ca_file"), ("keystore", "certificate_file")):
        location = given.get(f"ssl.{store}.location", "").strip()
        if not location:
            continue
        if given.get(f"ssl.{store}.type", "JKS").strip().upper() != "PEM":
            raise ConfigError(f"ssl.{store}.location: only PEM files can be read; give one, and ssl.{store}.type=PEM")
        found[option] = location
    for name, option in _FILES.items():
        if given.get(name, "").strip():
            found[option] = given[name].strip()
    if ("key_file" in found or "key_password" in found) and "certificate_file" not in found:
        raise ConfigError("ssl.key.location: needs ssl.certificate.location")
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise ConfigError(f"ssl.endpoint.identification.algorithm={told(algorithm)}: allowed is https, or nothing")
    found["check_hostname"] = algorithm == "https"
    return found


def _urls(name: str, text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _text(name: str, text: str) -> str | None:
    return text or None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{name}={told(text)}: allowed is true or false")
    return text.lower() == "true"


def _whole(lowest: int, highest: int = _MAX_INT) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        if not re.fullmatch(r"\d{1,16}", text, re.ASCII) or not lowest <= int(text) <= highest:
            raise ConfigError(f"{name}={told(text)}: needs a whole number from {lowest} to {highest}")
        return int(text)

    return read


def _milliseconds(lowest: int) -> Callable[[str, str], float]:
    read = _whole(lowest)
    return lambda name, text: read(name, text) / 1000


def _seconds(name: str, text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text, re.ASCII) or not float(text):
        raise ConfigError(f"{name}={told(text)}: needs a number of seconds")
    return float(text)


_READ: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "url": ("urls", _urls),
    "bearer.auth.logical.cluster": ("cluster", _text),
    "bearer.auth.identity.pool.id": ("identity_pool", _text),
    "enable.ssl.certificate.verification": ("verify", _flag),
    "timeout": ("read_timeout", _seconds),
    "http.connect.timeout.ms": ("connect_timeout", _milliseconds(1)),
    "http.read.timeout.ms": ("read_timeout", _milliseconds(1)),
    "request.timeout.ms": ("timeout", _milliseconds(1)),
    "max.retries": ("retries", _whole(0, 100)),
    "retries.wait.ms": ("backoff", _milliseconds(0)),
    "retries.max.wait.ms": ("backoff_max", _milliseconds(0)),
    "cache.capacity": ("cache_entries", _whole(1)),
    "max.response.bytes": ("max_response", _whole(1024, 1024 * MIB)),
}
_FILES: Final = {
    "ssl.ca.location": "ca_file",
    "ssl.truststore.certificates": "ca_text",
    "ssl.certificate.location": "certificate_file",
    "ssl.key.location": "key_file",
    "ssl.key.password": "key_password",
}
NAMES: Final = frozenset(
    {
        *_READ,
        *_FILES,
        "basic.auth.credentials.source",
        "basic.auth.user.info",
        "proxy",
        "proxy.host",
        "proxy.port",
        "bearer.auth.credentials.source",
        "bearer.auth.token",
        "sasl.username",
        "sasl.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.location",
        "ssl.truststore.type",
    }
)
"""All that are read, without their prefix."""

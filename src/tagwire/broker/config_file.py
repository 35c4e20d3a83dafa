"""A broker's settings in a TOML file.

    data = "/var/lib/topics"
    register = ["headers.toml"]        # names of int header keys
    fsync = "batch"                    # and everything else that Settings has, by its names

    [[listeners]]
    listen = "127.0.0.1:9092"

    [[listeners]]
    listen = "0.0.0.0:9093"
    advertise = "kafka.example.org:9093"
    sasl = ["SCRAM-SHA-512"]
    tls = { certificate = "broker.pem", key = "broker.key", client_ca = "clients.pem" }

    [users]
    alice = { env = "ALICE_PASSWORD" }         # or the password itself

    [oauthbearer]
    validator = "jwks"                         # or "unsecured": tokens that anybody can make, for tests
    jwks = "issuer.json"
    issuer = "https://login.example.org/"
    audience = "kafka"

Paths are relative to the file. No error tells a value of `users`, or a password.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from tagwire.broker.bearer_signatures import SignedTokens
from tagwire.broker.bearer_tokens import ClaimsCheck, TokenValidator, UnsecuredTokens
from tagwire.broker.network.listener import Listener, Tls
from tagwire.broker.settings import Settings
from tagwire.errors import ConfigError
from tagwire.records import HeaderRegister
from tagwire.rpc.addresses import address_of

_OWN: Final = ("data_dir", "listeners", "users", "register", "oauthbearer_validator")
_PLAIN: Final = {field.name: field for field in fields(Settings) if field.name not in _OWN}
_KINDS: Final = {"int": int, "bool": bool, "float": float}


def read_config(path: Path) -> dict[str, Any]:
    """What a file says, as arguments of `Settings`.

    Raises:
        ConfigError: it cannot be read, or holds what no setting is; the text names file, key and what is allowed.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from None
    try:
        return _settings(document, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _settings(document: Mapping[str, Any], home: Path) -> dict[str, Any]:
    _check_names(document, ("data", "listeners", "users", "register", "oauthbearer", *_PLAIN), "")
    given: dict[str, Any] = {}
    for name, value in document.items():
        if name == "data":
            given["data_dir"] = _path(home, value, "data")
        elif name == "listeners":
            given["listeners"] = tuple(_listener(entry, home) for entry in _list(value, "listeners"))
        elif name == "register":
            given["register"] = _register([_path(home, file, "register") for file in _list(value, "register")])
        elif name == "oauthbearer":
            given["oauthbearer_validator"] = _validator(_table(value, "oauthbearer"), home)
        elif name == "users":
            given["users"] = {user: _secret(told, f"users.{user}") for user, told in _table(value, "users").items()}
        else:
            given[name] = _plain(name, value)
    return given


def _register(files: list[Path]) -> HeaderRegister:
    try:
        return HeaderRegister.load(*files)
    except OSError as error:
        raise ConfigError(f"register: {error}") from None


def _plain(name: str, value: Any) -> Any:
    kind = _KINDS.get(str(_PLAIN[name].type), str)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{name}={value!r} is not {_NAMES[kind]}")
    return value


_NAMES: Final = {int: "a whole number", bool: "true or false", float: "a number", str: "a text"}


def _listener(entry: Any, home: Path) -> Listener:
    entry = _table(entry, "listeners")
    _check_names(entry, ("listen", "advertise", "tls", "sasl"), "listeners.")
    host, port = address_of(_text(entry.get("listen", "127.0.0.1:9092"), "listen"), "listen")
    advertise = entry.get("advertise")
    sasl = entry.get("sasl", [])
    return Listener(
        host,
        port,
        None if advertise is None else address_of(_text(advertise, "advertise"), "advertise"),
        _tls(entry["tls"], home) if "tls" in entry else None,
        tuple(_text(name, "sasl") for name in ([sasl] if isinstance(sasl, str) else _list(sasl, "sasl"))),
    )


def _tls(entry: Any, home: Path) -> Tls:
    entry = _table(entry, "tls")
    _check_names(entry, ("certificate", "key", "password", "client_ca", *_TLS_TEXTS), "tls.")
    if "certificate" not in entry:
        raise ConfigError("tls.certificate: missing")
    files: dict[str, Any] = {
        name: _path(home, entry[name], f"tls.{name}") for name in ("certificate", "key", "client_ca") if name in entry
    }
    password = _secret(entry["password"], "tls.password") if "password" in entry else None
    texts: dict[str, Any] = {name: _text(entry[name], f"tls.{name}") for name in _TLS_TEXTS if name in entry}
    return Tls(**files, password=password, **texts)


_TLS_TEXTS: Final = ("client_auth", "principal_mapping_rules")


_CLAIMS: Final = ("principal_claim", "scope_claim", "issuer", "audience")


def _validator(entry: Mapping[str, Any], home: Path) -> TokenValidator:
    _check_names(entry, ("validator", "jwks", "required_scope", "clock_skew_s", *_CLAIMS), "oauthbearer.")
    claims: dict[str, Any] = {name: _text(entry[name], f"oauthbearer.{name}") for name in _CLAIMS if name in entry}
    if "required_scope" in entry:
        scope = _list(entry["required_scope"], "oauthbearer.required_scope")
        claims["required_scope"] = [_text(each, "oauthbearer.required_scope") for each in scope]
    if "clock_skew_s" in entry:
        skew = entry["clock_skew_s"]
        if type(skew) not in (int, float):
            raise ConfigError(f"oauthbearer.clock_skew_s={skew!r} is not a number")
        claims["clock_skew_s"] = skew
    kind = entry.get("validator")
    if kind == "unsecured" and "jwks" not in entry:
        return UnsecuredTokens(ClaimsCheck(**claims))
    if kind == "jwks" and "jwks" in entry:
        return SignedTokens(_path(home, entry["jwks"], "oauthbearer.jwks"), ClaimsCheck(**claims))
    raise ConfigError('oauthbearer.validator is not "unsecured", nor "jwks" with a file as oauthbearer.jwks')


def _secret(told: Any, name: str) -> str:
    if isinstance(told, Mapping) and list(told) == ["env"]:
        variable = _text(told["env"], f"{name}.env")
        if variable not in os.environ:
            raise ConfigError(f"{name}: the environment has no {variable}")
        if not os.environ[variable]:
            raise ConfigError(f"{name}: {variable} is empty in the environment")
        return os.environ[variable]
    if not isinstance(told, str) or not told:
        raise ConfigError(f"{name} is not a text, nor {{ env = NAME }}")
    return told


def _check_names(given: Mapping[str, Any], known: tuple[str, ...], under: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"{under}{name}: no such setting; there are {', '.join(known)}")


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{name}={value!r} is not a text")
    return value


def _path(home: Path, value: Any, name: str) -> Path:
    return home / _text(value, name)


def _table(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is not a table")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{name} is not a list")
    return value

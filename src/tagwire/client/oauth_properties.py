"""The properties of Java's clients and of librdkafka that say where tokens come from, as options of our client.

| property | of `ClientCredentials` |
|----------|------------------------|
| sasl.oauthbearer.token.endpoint.url | token_endpoint_url |
| sasl.oauthbearer.client.credentials.client.id, sasl.oauthbearer.client.id; clientId of the login module | client_id |
| ....client.secret; clientSecret of the login module | client_secret |
| sasl.oauthbearer.scope; scope of the login module | scope |
| sasl.oauthbearer.extensions, name=value with commas; extension_NAME of the login module | extensions |
| https.ca.location | cafile |
| sasl.oauthbearer.expected.audience, sasl.oauthbearer.clock.skew.seconds | expected_audience, clock_skew |
| sasl.login.connect.timeout.ms, sasl.login.read.timeout.ms | connect_timeout, read_timeout |
| sasl.login.retry.backoff.ms, sasl.login.retry.backoff.max.ms | retry_backoff, retry_backoff_max |

`sasl.login.refresh.*` are those of `TokenRefresh`. Instead of an endpoint there may be a function: `oauth_cb` as
confluent-kafka has it, or sasl.login.callback.handler.class=MODULE:FUNCTION, which is text, so that it reaches Spark's
executors and imports there. Java's own handler of that name means the endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tagwire.client.jaas import LoginModule
from tagwire.client.property_values import contradicts
from tagwire.errors import ConfigError, TokenError
from tagwire.escaping import told

if TYPE_CHECKING:
    from tagwire.client.oauth_endpoint import ClientCredentials
    from tagwire.client.oauth_token import OAuthToken

OAUTH_CB: Final = "oauth_cb"
"""confluent-kafka's name for a function that takes sasl.oauthbearer.config and gives a token, when it ends, and maybe a
principal and extensions. Source: confluent-kafka-python's documentation of `oauth_cb`."""

_HANDLER: Final = "sasl.login.callback.handler.class"
_CONFIG: Final = "sasl.oauthbearer.config"
_EXTENSIONS: Final = "sasl.oauthbearer.extensions"

_TEXTS: Final = {
    "sasl.oauthbearer.token.endpoint.url": "token_endpoint_url",
    "sasl.oauthbearer.client.id": "client_id",
    "sasl.oauthbearer.client.credentials.client.id": "client_id",
    "sasl.oauthbearer.client.secret": "client_secret",
    "sasl.oauthbearer.client.credentials.client.secret": "client_secret",
    "sasl.oauthbearer.scope": "scope",
    "sasl.oauthbearer.expected.audience": "expected_audience",
    "https.ca.location": "cafile",
}
_NUMBERS: Final = {
    "sasl.oauthbearer.clock.skew.seconds": ("clock_skew", 1.0),
    "sasl.login.connect.timeout.ms": ("connect_timeout", 0.001),
    "sasl.login.read.timeout.ms": ("read_timeout", 0.001),
    "sasl.login.retry.backoff.ms": ("retry_backoff", 0.001),
    "sasl.login.retry.backoff.max.ms": ("retry_backoff_max", 0.001),
}
_REFRESH: Final = {
    "sasl.login.refresh.window.factor": "window_factor",
    "sasl.login.refresh.window.jitter": "window_jitter",
    "sasl.login.refresh.min.period.seconds": "min_period",
    "sasl.login.refresh.buffer.seconds": "buffer",
}
# Of these one value is what is done here; any other asks for something else.
_ONLY: Final = {
    "sasl.oauthbearer.method": ("oidc", "default"),
    "sasl.oauthbearer.grant.type": ("client_credentials",),
    "sasl.oauthbearer.header.urlencode": ("false",),
    "sasl.oauthbearer.jwt.retriever.class": ("ClientCredentialsJwtRetriever", "DefaultJwtRetriever"),
    "enable.sasl.oauthbearer.unsecure.jwt": ("false",),
}
_OF_MODULE: Final = {"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope"}
_EXTENSION: Final = "extension_"
_JAVAS_HANDLER: Final = "OAuthBearerLoginCallbackHandler"
_FUNCTION: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NEEDED: Final = ("token_endpoint_url", "client_id", "client_secret")

READ: Final = frozenset({*_TEXTS, *_NUMBERS, *_REFRESH, *_ONLY, _HANDLER, _CONFIG, _EXTENSIONS, OAUTH_CB})


def oauth_options(properties: Mapping[str, str], module: LoginModule | None, callback: object) -> dict[str, Any]:
    """The options that `properties` give; the rest of them is left alone.

    Args:
        module: of sasl.jaas.config, where it is OAuthBearerLoginModule.
        callback: `oauth_cb`, None where there is none.

    Raises:
        ConfigError: naming the property, never a secret.
    """
    for name, allowed in _ONLY.items():
        if name in properties and properties[name].strip().rpartition(".")[2] not in allowed:
            raise ConfigError(f"{name}={told(properties[name], 80)}: allowed is {' or '.join(allowed)}")
    from tagwire.client.oauth_login import TokenRefresh  # few clients need it

    found: dict[str, Any] = {}
    source = _source(properties, module, callback)
    if source is not None:
        found["sasl_oauth_token"] = source
    refresh = {option: _number(name, properties[name]) for name, option in _REFRESH.items() if name in properties}
    if refresh:
        found["sasl_oauth_refresh"] = _named(lambda: TokenRefresh(**refresh), "sasl.login.refresh.*")
    return found


def _source(
    properties: Mapping[str, str], module: LoginModule | None, callback: object
) -> Callable[[], OAuthToken] | ClientCredentials | None:
    handler = properties.get(_HANDLER, "").strip()
    if callback is not None:
        if not callable(callback):
            raise ConfigError(f"{OAUTH_CB}: needs a function, not {type(callback).__name__}")
        return lambda: _given_by(callback, properties.get(_CONFIG, ""))
    if handler and handler.rpartition(".")[2] != _JAVAS_HANDLER:
        if not _FUNCTION.fullmatch(handler):
            raise ConfigError(
                f"{_HANDLER}={told(handler, 200)}: a class of Java's cannot be called; give a function of Python's, "
                "MODULE:FUNCTION"
            )
        return lambda: _imported(handler)
    given: dict[str, Any] = {}
    for name, option in _TEXTS.items():
        if _is_set(name, properties) and given.setdefault(option, properties[name]) != properties[name]:
            other = next(each for each, sets in _TEXTS.items() if sets == option)
            raise contradicts(name, other)
    if not given and module is None:
        return None
    for name, (option, unit) in _NUMBERS.items():
        if name in properties:
            given[option] = _number(name, properties[name]) * unit
    extensions = dict(_extensions(properties.get(_EXTENSIONS, "")))
    if module is not None:
        told_by_module = {
            option: module.options[name] for name, option in _OF_MODULE.items() if _is_set(name, module.options)
        }
        given = told_by_module | given  # what a property says comes first. Source: Kafka's ConfigOrJaas
        extensions |= {
            name.removeprefix(_EXTENSION): value
            for name, value in module.options.items()
            if name.startswith(_EXTENSION)
        }
    missing = [option for option in _NEEDED if not given.get(option)]
    if missing:
        told_as = next(name for name, option in reversed(_TEXTS.items()) if option == missing[0])
        raise ConfigError(f"{told_as}: missing; OAUTHBEARER by client credentials needs it")
    from tagwire.client.oauth_endpoint import ClientCredentials

    credentials: ClientCredentials = _named(
        lambda: ClientCredentials(extensions=extensions, **given), "sasl.oauthbearer.*"
    )
    return credentials


def _is_set(name: str, values: Mapping[str, str]) -> bool:
    """Whether there is a value; blank is the same as none. Source: Kafka's JaasOptionsUtils."""
    return bool(values.get(name, "").strip())


def _extensions(text: str) -> list[tuple[str, str]]:
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise ConfigError(f"{_EXTENSIONS}: needs name=value, with commas between")
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name}={told(text, 40)}: needs a number") from None


def _named(make: Callable[[], Any], name: str) -> Any:
    try:
        return make()
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _given_by(callback: Callable[[str], Any], config: str) -> OAuthToken:
    """What confluent-kafka's kind of function gives."""
    from tagwire.client.oauth_token import OAuthToken

    given = callback(config)
    if not isinstance(given, tuple) or len(given) not in (2, 3, 4):
        raise TokenError(f"{OAUTH_CB}: gave no tuple of a token and the time when it ends")
    value, ends, *more = given
    if not isinstance(ends, (int, float)) or isinstance(ends, bool):
        raise TokenError(f"{OAUTH_CB}: the time when the token ends is no number of seconds since 1970")
    extensions = more[1] if len(more) == 2 and more[1] is not None else {}
    return OAuthToken(value, float(ends), extensions)


def _imported(path: str) -> Any:
    """What a function gives that is imported where the token is needed."""
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in name.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise TokenError(f"{_HANDLER}={told(path, 200)}: {type(error).__name__}: {told(str(error), 200)}") from None
    return found()

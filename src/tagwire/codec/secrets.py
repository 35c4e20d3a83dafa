"""Fields whose values no repr shows: credentials, tokens, what SCRAM derives from passwords, secret settings."""

from __future__ import annotations

import re
from typing import Any, Final

from tagwire.spec import Struct

SECRET_FIELDS: Final = frozenset(
    {
        ("SaslAuthenticateRequest", "AuthBytes"),
        ("SaslAuthenticateResponse", "AuthBytes"),
        ("CreateDelegationTokenResponse", "Hmac"),
        ("RenewDelegationTokenRequest", "Hmac"),
        ("ExpireDelegationTokenRequest", "Hmac"),
        ("DescribedDelegationToken", "Hmac"),
        ("ScramCredentialUpsertion", "Salt"),
        ("ScramCredentialUpsertion", "SaltedPassword"),
        ("UserScramCredentialRecord", "Salt"),
        ("UserScramCredentialRecord", "StoredKey"),
        ("UserScramCredentialRecord", "ServerKey"),
        ("EnvelopeRequest", "RequestPrincipal"),
        ("EnvelopeRequest", "RequestData"),  # a whole request or response, whose secrets nobody looks for
        ("EnvelopeResponse", "ResponseData"),
    }
)
"""(struct or message name, field name)."""

SETTINGS: Final = frozenset(
    {
        "AlterableConfig",
        "ConfigRecord",
        "CreatableTopicConfig",
        "CreatableTopicConfigs",
        "DescribeConfigsResourceResult",
        "DescribeConfigsSynonym",
        "KeyValue",
        "LastAssignmentConfig",
        "TopicConfig",
    }
)
"""Structs that hold a setting of a broker, topic, group or client: its name (or key), and its value."""

SETTING_VALUES: Final = frozenset({"value", "synonyms"})
"""The attributes of such a struct that hold what it is set to."""

# How the names of Kafka's settings of type PASSWORD end, listener prefixes or not, and those of the usual plugins.
_SECRET_NAME = re.compile(
    r"(pass(word|wd|phrase)|pwd|secret|token|credentials?|user[._-]?info|jaas[._-]config"
    r"|key|certificates|certificate[._-]chain)\s*$",
    re.IGNORECASE,
)


def holds_secrets(struct: Struct) -> bool:
    """Whether a struct, or what is in it at any depth, has fields that may not be shown."""
    return struct.name in SETTINGS or any(
        (struct.name, field.name) in SECRET_FIELDS or (field.struct is not None and holds_secrets(field.struct))
        for field in struct.fields
    )


def is_secret(setting: Any) -> bool:
    """Whether what a struct of `SETTINGS` is set to must not be shown: the broker says so, or its name does."""
    name = getattr(setting, "name", None) if hasattr(setting, "name") else getattr(setting, "key", None)
    return bool(getattr(setting, "is_sensitive", False)) or not isinstance(name, str) or bool(_SECRET_NAME.search(name))

"""Fields whose values never appear in a repr: credentials, tokens, and what SCRAM derives from passwords."""

from __future__ import annotations

from typing import Final

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

"""Which certificates a client takes a server's word by: the same on every Python, and as Java's clients.

What is named vouches by itself, an intermediate authority too. An authority that was made by hand may lack extensions
that RFC 5280 wants; OpenSSL, Java and librdkafka take it all the same, and Python does before 3.13.
"""

from __future__ import annotations

import ssl
from os import PathLike


def trusting(cafile: str | PathLike[str] | None) -> ssl.SSLContext:
    """A context that trusts the certificates of a PEM file; None trusts those of the system.

    Raises:
        OSError, ValueError: the file cannot be read, or has none.
    """
    return _as_everywhere(ssl.create_default_context(cafile=cafile))


def trusting_nobody() -> ssl.SSLContext:
    """A context to which whoever is trusted is still to be told."""
    return _as_everywhere(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _as_everywhere(context: ssl.SSLContext) -> ssl.SSLContext:
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context

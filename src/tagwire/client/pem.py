"""Certificates and keys as PEM text, where they stand in options and not in files.

Python's `ssl` reads a certificate and its key from files alone. So they are written to one that nobody else can open,
and that is gone before this returns: of memory where the system has such files.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final

from tagwire.errors import ConfigError

MAX_PEM: Final = 1024 * 1024
"""Characters of the longest text that is read; a chain has a few thousand."""


@dataclass(frozen=True, slots=True)
class PemTexts:
    """PEM as options have it.

    Attributes:
        authorities: the certificates to trust.
        chain: the client's own, and those that vouch for it; and its key, where `key` is None.
    """

    authorities: str | None = field(default=None, repr=False)
    chain: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)

    def load(self, context: ssl.SSLContext, password: str | None) -> None:
        """Gives a context what there is.

        Args:
            password: what the key is encrypted with.

        Raises:
            ConfigError: a text is none, or key and certificate do not belong together. Nothing of them is told.
        """
        for option, text in (
            ("ssl_ca_pem", self.authorities),
            ("ssl_certificate_pem", self.chain),
            ("ssl_key_pem", self.key),
        ):
            if text is not None and len(text) > MAX_PEM:
                raise ConfigError(f"{option}: has {len(text)} characters; {MAX_PEM} are the most")
        if self.authorities is not None:
            # Bundles have comments in any language, of which Python wants none.
            text = self.authorities.encode("ascii", "replace").decode("ascii")
            try:
                context.load_verify_locations(cadata=text)
            except (ssl.SSLError, ValueError) as error:
                raise ConfigError(f"ssl_ca_pem: {getattr(error, 'reason', None) or 'no certificates of PEM'}") from None
        if self.chain is not None:
            _load_chain(context, f"{self.key or ''}\n{self.chain}\n", password)
        elif self.key is not None:
            raise ConfigError("ssl_key_pem: has no effect without ssl_certificate_pem")


NO_TEXTS: Final = PemTexts()


def why(error: OSError | ValueError) -> str:
    """Why OpenSSL did not take a file, or Python a path or a password to hand over; nothing of a password."""
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)


def _load_chain(context: ssl.SSLContext, text: str, password: str | None) -> None:
    descriptor, path, is_named = _private_file()
    try:
        with open(descriptor, "w", encoding="utf-8", errors="replace", closefd=False) as file:
            file.write(text)
        # A function: without one, OpenSSL asks the terminal for the password of an encrypted key.
        context.load_cert_chain(path, None, lambda: password or "")
    except (OSError, ValueError) as error:
        raise ConfigError(f"ssl_certificate_pem: {getattr(error, 'reason', None) or why(error)}") from None
    finally:
        os.close(descriptor)
        if is_named:
            os.unlink(path)


def _private_file() -> tuple[int, str, bool]:
    """An empty file for this process alone: its descriptor, how it is opened, and whether it is to be deleted."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("tagwire-certificate", os.MFD_CLOEXEC)
        return descriptor, f"/proc/self/fd/{descriptor}", False
    return *tempfile.mkstemp(prefix="tagwire-certificate-"), True

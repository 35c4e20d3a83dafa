"""The certificates and the key of a client as files, read again when they change.

Certificates end, and whoever issues them replaces the files below a program that runs for months. Each new connection
looks at the files first; one that is open keeps what it began with.
"""

from __future__ import annotations

import logging
import os
import ssl
from os import PathLike

from tagwire.client.pem import NO_TEXTS, PemTexts, why
from tagwire.client.trust import trusting, trusting_nobody
from tagwire.errors import ConfigError

logger = logging.getLogger("tagwire.client")

Path = str | PathLike[str]

_Seen = tuple[tuple[int, ...] | None, ...]


class CertificateFiles:
    """What a client trusts, and what it is known by.

    Args:
        cafile: certificates to trust; None trusts those of the system.
        certfile, keyfile, password: the client's own, where it has one; None for `keyfile` finds the key in `certfile`.
        check_hostname: whether a broker's certificate must name its host.
        verify: whether it must be trusted at all.
        texts: what stands in options instead of in files.

    Raises:
        ConfigError: a file cannot be read, or is none of the kind. The text names the option and the file.
    """

    def __init__(
        self,
        cafile: Path | None,
        certfile: Path | None,
        keyfile: Path | None,
        password: str | None,
        *,
        check_hostname: bool,
        verify: bool = True,
        texts: PemTexts = NO_TEXTS,
    ) -> None:
        self._cafile = cafile
        self._certfile = certfile
        self._keyfile = keyfile
        self._password = password
        self._check_hostname = check_hostname
        self._verify = verify
        self._texts = texts
        self._seen = self._look()
        self._context = self._made()

    def context(self) -> ssl.SSLContext:
        """What a connection begins with now. Where files have changed and cannot be read, as while they are written,
        it is what it was; the log has a line of it for each change."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen  # before they are read: what is written meanwhile is another change
            try:
                made = self._made()
            except ConfigError as error:
                logger.warning("certificates have changed and cannot be read; those from before stay in use: %s", error)
            else:
                logger.info("certificates have changed; new connections use the new ones")
                if self._seen is seen:  # else another thread has seen a later change meanwhile
                    self._context = made
        return self._context

    def _look(self) -> _Seen:
        """What tells a file from the one that was there before; None for one that is not there."""
        return tuple(_identity(path) for path in (self._cafile, self._certfile, self._keyfile) if path is not None)

    def _made(self) -> ssl.SSLContext:
        try:
            context = trusting(self._cafile)
        except (OSError, ValueError) as error:
            raise ConfigError(f"ssl_cafile={str(self._cafile)!r}: {why(error)}") from None
        if self._texts.authorities is not None:
            context = trusting_nobody()  # but them
        context.check_hostname = self._check_hostname and self._verify
        if not self._verify:
            context.verify_mode = ssl.CERT_NONE
        self._texts.load(context, self._password)
        if self._certfile is not None:
            try:
                # A function: without one, OpenSSL asks the terminal for the password of an encrypted key.
                context.load_cert_chain(self._certfile, self._keyfile, lambda: self._password or "")
            except (OSError, ValueError) as error:
                raise ConfigError(f"ssl_certfile={str(self._certfile)!r}: {why(error)}") from None
        elif self._keyfile is not None:
            raise ConfigError("ssl_keyfile: has no effect without ssl_certfile")
        return context


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

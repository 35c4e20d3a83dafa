"""TLS of one connection, without the socket: bytes of the network in and out on one side, plaintext on the other.

All drivers share this one path: OpenSSL works on memory (`ssl.SSLObject`), never on a socket.
"""

from __future__ import annotations

import ssl
from typing import Final

from tagwire.errors import ConnectError

# Bytes that are read from the network at once, and that are encrypted at once.
_READ_BYTES: Final = 128 * 1024
_WRITE_BYTES: Final = 128 * 1024


class Tls:
    """A client's side of TLS.

    Attributes:
        version: the protocol that was agreed on, such as "TLSv1.3"; None before.
        certificate_ends: until when the broker's certificate is valid, as `ssl.cert_time_to_seconds` reads it; None
            where the context checks no certificate, and before the handshake is complete.

    Args:
        context: what it trusts, and the client's own certificate.
        host: the name that the broker's certificate has to have.

    Raises:
        ConnectError: TLS cannot name such a host.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._space = memoryview(bytearray(_READ_BYTES))
        self.version: str | None = None
        self.certificate_ends: str | None = None
        try:
            self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        except ValueError as error:
            raise ConnectError(f"no TLS: {error}") from None

    # The network's side --------------------------------------------------------------------------------------------

    def space(self) -> memoryview:
        """Where the next bytes from the network may be written: call `received` after it."""
        return self._space

    def received(self, count: int) -> None:
        """Tells that `count` bytes are in `space()`; 0 means that the peer closed its side."""
        if count:
            self._incoming.write(self._space[:count])
        else:
            self._incoming.write_eof()

    def output(self) -> bytes:
        """What is to go to the network next."""
        return self._outgoing.read()

    # The connection's side -----------------------------------------------------------------------------------------

    def shake_hands(self) -> bool:
        """Goes on with the handshake; whether it is complete. Raises ConnectError: its text is the reason."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLCertVerificationError as error:
            raise ConnectError(f"its certificate is not trusted: {error.verify_message}") from None
        except ssl.SSLError as error:
            # A broker responds to a greeting that it takes for a request with bytes that are no TLS, or hangs up.
            plain = error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
            hint = "; it does not seem to speak TLS" if plain else ""
            raise ConnectError((error.reason or str(error)) + hint) from None
        except OSError as error:
            raise ConnectError(f"{error.strerror or error} in the TLS handshake; it may not speak TLS") from None
        self.version = self._object.version()
        ends = (self._object.getpeercert() or {}).get("notAfter")
        self.certificate_ends = ends if isinstance(ends, str) else None
        return True

    def encrypt(self, data: memoryview) -> int:
        """Takes bytes to be sent; how many it took. 0 where TLS has to hear from the peer first.

        Raises:
            OSError: TLS has failed.
        """
        try:
            return self._object.write(data[:_WRITE_BYTES])
        except ssl.SSLWantReadError:
            return 0
        except ssl.SSLError as error:
            raise _failed(error) from None

    def decrypt(self, space: memoryview) -> int | None:
        """Writes what the peer said to `space`; how many bytes, 0 at its end, None while nothing whole is there.

        Raises:
            OSError: TLS has failed.
        """
        try:
            return self._object.read(len(space), space)  # type: ignore[return-value]
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):  # many a broker ends without a word of TLS's
            return 0
        except ssl.SSLError as error:
            raise _failed(error) from None


def _failed(error: ssl.SSLError) -> OSError:
    """What the peer says after the handshake, as OpenSSL calls it. With TLS 1.3 it looks at a client's certificate only
    then."""
    reason = error.reason or str(error)
    asks = reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    return OSError(f"{reason}{'; it asks clients for a certificate: ssl_certfile' if asks else ''}")

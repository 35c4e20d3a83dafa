"""Hosts and ports as people write them: "HOST:PORT", an IPv6 address in brackets."""

from __future__ import annotations

from typing import Final

from tagwire.errors import ConfigError
from tagwire.escaping import told

Address = tuple[str, int]

MAX_HOST: Final = 253
"""Characters of the longest name that the DNS has (RFC 1035, without the last dot)."""


def address_of(text: str, option: str) -> Address:
    """The host and port of "HOST:PORT" or "[IPv6]:PORT", port 0 too. Raises ConfigError naming `option`."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise ConfigError(f"{option}={told(text)!r} is not HOST:PORT")
    if fault := host_fault(host):
        raise ConfigError(f"{option}={told(text)!r}: {fault}")
    return host, int(port)


def address_text(address: Address) -> str:
    """The opposite of `address_of`. Of a host that cannot be one, what can be shown."""
    host, port = told(address[0], MAX_HOST), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address_fault(address: Address) -> str | None:
    """Why nobody can be connected to at an address, as far as that shows without trying; None where it does
    not. Clients connect where a broker's responses send them, and the system's functions raise what they like at
    such hosts and ports."""
    host, port = address
    return host_fault(host) or (None if 0 < port < 65536 else f"port {port} is not 1 to 65535")


def host_fault(host: str) -> str | None:
    """Why a text cannot be a host's name or address; None where it may be one."""
    if not host:
        return "the host is empty"
    if len(host) > MAX_HOST:
        return f"a host of {len(host)} characters; {MAX_HOST} are the most"
    if not host.isprintable() or " " in host:
        return "a host with characters that no name has"
    try:
        host.encode("idna")
    except UnicodeError:
        return "a host that is no domain name: each label has 1 to 63 characters, which IDNA can encode"
    return None

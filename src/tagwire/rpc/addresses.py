"""Hosts and ports as people write them: "HOST:PORT", an IPv6 address in brackets."""

from __future__ import annotations

from tagwire.errors import ConfigError

Address = tuple[str, int]


def address_of(text: str, option: str) -> Address:
    """The host and port of "HOST:PORT" or "[IPv6]:PORT". Raises ConfigError naming `option`."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        raise ConfigError(f"{option}={text!r} is not HOST:PORT")
    return host, int(port)


def address_text(address: Address) -> str:
    """The opposite of `address_of`."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

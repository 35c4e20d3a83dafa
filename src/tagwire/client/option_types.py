"""Of which type an option is, checked before it is used."""

from __future__ import annotations

from tagwire.errors import ConfigError


def of_type(name: str, value: object, kinds: type | tuple[type, ...], allowed: str) -> None:
    """Raises ConfigError for an option that is neither left out nor of these types; a truth value is no number. What it
    is stays untold: it may be a password."""
    if value is None or (isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)):
        return
    raise ConfigError(f"{name}: needs {allowed}, not {type(value).__name__}")

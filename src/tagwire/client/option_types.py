"""Of which type an option is, checked before it is used."""

from __future__ import annotations

from tagwire.errors import ConfigError


def of_type(name: str, value: object, kinds: type | tuple[type, ...], allowed: str) -> None:
    """Raises ConfigError for an option that is neither left out nor of these types; a truth value is no number. What it
    is stays untold: it may be a password."""
    if value is None or (isinstance(value, kinds) and (not isinstance(value, bool) or kinds is bool)):
        return
    raise ConfigError(f"{name}: needs {allowed}, not {type(value).__name__}")


def credential_fault(given: object) -> str | None:
    """Why this can be no name or secret of a login; None if it can, or is not given. Tells nothing of it."""
    if given is None:
        return None
    if not isinstance(given, str):
        return f"needs text, not {type(given).__name__}"
    if "\0" in given:
        return "has a character 0, which SASL forbids"
    try:
        given.encode()
    except UnicodeEncodeError:
        return "has half of a character (a surrogate), which is no text"
    return None

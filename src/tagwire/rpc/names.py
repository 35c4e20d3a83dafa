"""API names as people say them: `Fetch`, not 1."""

from __future__ import annotations

import re
from typing import Final

from tagwire.spec.api_keys import API_NAMES

_KEYS: Final = {name: key for key, name in API_NAMES.items()}
_UNNAMED: Final = re.compile(r"(?:API )?(\d{1,5})", re.ASCII)


def api_name(api: int) -> str:
    """The name of the API with this key; "API 337" for a key that no API has."""
    return API_NAMES.get(api, f"API {api}")


def api_key(name: str) -> int | None:
    """The key of the API with this name; of "API 337" and "337" the number. None where no API has the name."""
    number = _UNNAMED.fullmatch(name)
    if number is not None and int(number[1]) <= 32767:
        return int(number[1])
    return _KEYS.get(name)

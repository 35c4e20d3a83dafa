"""API names as people say them: `Fetch`, not 1."""

from __future__ import annotations

from tagwire.spec.api_keys import API_NAMES


def api_name(api: int) -> str:
    """The name of the API with this key; "API 337" for a key that no API has."""
    return API_NAMES.get(api, f"API {api}")

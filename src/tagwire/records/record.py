"""A record as a Python object, and its headers."""

from __future__ import annotations

from tagwire.kernel.record_objects import HeaderKey, Headers, MalformedKey, Record

__all__ = ["HeaderKey", "Headers", "MalformedKey", "Record"]

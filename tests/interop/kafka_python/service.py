"""Stands in for a file that kafka-python's source distribution leaves out: what its tests use of a running broker."""

from __future__ import annotations


class ExternalService:
    """A broker that somebody else starts and stops."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port


class SpawnedService:
    """A broker that the tests would start: never here."""

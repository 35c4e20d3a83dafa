"""Frames on a connection: sans-IO connections, request and response headers, version negotiation."""

from tagwire.rpc.frames import Frames, Limits

__all__ = ["Frames", "Limits"]

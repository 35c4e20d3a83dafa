"""Frames on a connection: sans-IO connections, request and response headers, version negotiation."""

from tagwire.rpc.connection import Connection, Event
from tagwire.rpc.events import (
    CLOSED,
    NEED_DATA,
    AnyRequest,
    Request,
    Response,
    Signal,
    UnservedRequest,
    Unsupported,
    UnsupportedApiVersions,
)
from tagwire.rpc.features import Features, Obstacle
from tagwire.rpc.frames import Frames, Limits
from tagwire.rpc.handshake import Handshake
from tagwire.rpc.headers import (
    RequestHeader,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)
from tagwire.rpc.names import api_name
from tagwire.rpc.negotiation import Excluded, Range, Ranges, choose, intersect, negotiate

__all__ = [
    "CLOSED",
    "NEED_DATA",
    "AnyRequest",
    "Connection",
    "Event",
    "Excluded",
    "Features",
    "Frames",
    "Handshake",
    "Limits",
    "Obstacle",
    "Range",
    "Ranges",
    "Request",
    "RequestHeader",
    "Response",
    "Signal",
    "UnservedRequest",
    "Unsupported",
    "UnsupportedApiVersions",
    "api_name",
    "choose",
    "decode_request_header",
    "encode_request_header",
    "encode_response_header",
    "intersect",
    "negotiate",
    "request_header_version",
    "response_header_version",
]

"""Frames on a connection: sans-IO connections, request and response headers, version negotiation, SASL."""

from typing import TYPE_CHECKING

from tagwire.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from tagwire.rpc.apis import Api, Apis, MessageSpec, api_of
    from tagwire.rpc.broker_features import BrokerFeatures
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
    from tagwire.rpc.features import Features, Obstacle, Usability
    from tagwire.rpc.frames import Frames, Limits
    from tagwire.rpc.gate import Gate
    from tagwire.rpc.handshake import Handshake, is_software_text
    from tagwire.rpc.headers import (
        RequestHeader,
        decode_request_header,
        encode_request_header,
        encode_response_header,
        request_header_version,
        response_header_version,
    )
    from tagwire.rpc.names import api_key, api_name
    from tagwire.rpc.negotiation import (
        Excluded,
        choose,
        exclusions,
        is_deprecated,
        negotiate,
        not_to_be_used,
        ranges_from,
    )
    from tagwire.rpc.oauthbearer import OAUTHBEARER, OAuthBearerClient, OAuthBearerServer, ValidatedToken
    from tagwire.rpc.ranges import Range, Ranges, intersect, range_text
    from tagwire.rpc.releases import ranges_of, resembling, serving
    from tagwire.rpc.sasl import Authentication, ClientMechanism, PlainClient, PlainServer, ServerMechanism
    from tagwire.rpc.scram import (
        SCRAM_HASHES,
        ScramClient,
        ScramCredential,
        ScramServer,
        salted_credential,
        scram_credential,
    )
    from tagwire.rpc.throttling import pause_after

__all__ = [
    "CLOSED",
    "NEED_DATA",
    "OAUTHBEARER",
    "SCRAM_HASHES",
    "AnyRequest",
    "Api",
    "Apis",
    "Authentication",
    "BrokerFeatures",
    "ClientMechanism",
    "Connection",
    "Event",
    "Excluded",
    "Features",
    "Frames",
    "Gate",
    "Handshake",
    "Limits",
    "MessageSpec",
    "OAuthBearerClient",
    "OAuthBearerServer",
    "Obstacle",
    "PlainClient",
    "PlainServer",
    "Range",
    "Ranges",
    "Request",
    "RequestHeader",
    "Response",
    "ScramClient",
    "ScramCredential",
    "ScramServer",
    "ServerMechanism",
    "Signal",
    "UnservedRequest",
    "Unsupported",
    "UnsupportedApiVersions",
    "Usability",
    "ValidatedToken",
    "api_key",
    "api_name",
    "api_of",
    "choose",
    "decode_request_header",
    "encode_request_header",
    "encode_response_header",
    "exclusions",
    "intersect",
    "is_deprecated",
    "is_software_text",
    "negotiate",
    "not_to_be_used",
    "pause_after",
    "range_text",
    "ranges_from",
    "ranges_of",
    "request_header_version",
    "resembling",
    "response_header_version",
    "salted_credential",
    "scram_credential",
    "serving",
]

# Most connections have no SASL, and nobody asks of most releases what they serve.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "tagwire.rpc.apis": ("Api", "Apis", "MessageSpec", "api_of"),
            "tagwire.rpc.broker_features": ("BrokerFeatures",),
            "tagwire.rpc.connection": ("Connection", "Event"),
            "tagwire.rpc.events": (
                "CLOSED",
                "NEED_DATA",
                "AnyRequest",
                "Request",
                "Response",
                "Signal",
                "UnservedRequest",
                "Unsupported",
                "UnsupportedApiVersions",
            ),
            "tagwire.rpc.features": ("Features", "Obstacle", "Usability"),
            "tagwire.rpc.frames": ("Frames", "Limits"),
            "tagwire.rpc.gate": ("Gate",),
            "tagwire.rpc.handshake": ("Handshake", "is_software_text"),
            "tagwire.rpc.headers": (
                "RequestHeader",
                "decode_request_header",
                "encode_request_header",
                "encode_response_header",
                "request_header_version",
                "response_header_version",
            ),
            "tagwire.rpc.names": ("api_key", "api_name"),
            "tagwire.rpc.negotiation": (
                "Excluded",
                "choose",
                "exclusions",
                "is_deprecated",
                "negotiate",
                "not_to_be_used",
                "ranges_from",
            ),
            "tagwire.rpc.oauthbearer": ("OAUTHBEARER", "OAuthBearerClient", "OAuthBearerServer", "ValidatedToken"),
            "tagwire.rpc.ranges": ("Range", "Ranges", "intersect", "range_text"),
            "tagwire.rpc.releases": ("ranges_of", "resembling", "serving"),
            "tagwire.rpc.sasl": ("Authentication", "ClientMechanism", "PlainClient", "PlainServer", "ServerMechanism"),
            "tagwire.rpc.scram": (
                "SCRAM_HASHES",
                "ScramClient",
                "ScramCredential",
                "ScramServer",
                "salted_credential",
                "scram_credential",
            ),
            "tagwire.rpc.throttling": ("pause_after",),
        },
    )

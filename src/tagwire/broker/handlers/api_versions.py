"""ApiVersions (key 18): list the APIs that are served, and their versions.

Versions 0-5. The response to a version that is not served has the layout of version 0, error 35, and the range of
ApiVersions itself (KIP-511). From version 3 a client says what software it is; a name or version that is not of the
form Kafka asks for is refused. From version 5 it also says, if it knows, which broker of which cluster it means; one
that means another is told to begin anew (KIP-1242). Source:
docs/wire-format.md#apiversions.
"""

from __future__ import annotations

from collections.abc import Mapping

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc import Range, is_software_text
from tagwire.rpc.version_gates import API_VERSIONS_CLIENT_SOFTWARE
from tagwire.spec.api_keys import ApiKey

Request = messages.ApiVersionsRequest
Response = messages.ApiVersionsResponse

NOT_SAID = -1


@handles(Request, versions="0-5")
async def api_versions(call: Call[Request]) -> Response:
    request = call.request
    if call.version >= API_VERSIONS_CLIENT_SOFTWARE:
        named = request.client_software_name, request.client_software_version
        if not all(map(is_software_text, named)):
            return Response(error_code=Error.INVALID_REQUEST)
        if (request.cluster_id is None) != (request.node_id == NOT_SAID):
            return Response(error_code=Error.INVALID_REQUEST)
        if request.cluster_id is not None and (request.cluster_id, request.node_id) != _identity(call):
            return Response(error_code=Error.REBOOTSTRAP_REQUIRED)
        call.session.software, call.session.software_version = named
    advertised = call.session.advertised
    return Response(api_keys=[_entry(key, advertised) for key in sorted(advertised)])


def _identity(call: Call[Request]) -> tuple[str, int]:
    return call.broker.cluster_id, call.broker.node_id


def unsupported_version(advertised: Mapping[int, Range]) -> Response:
    """The response, in version 0, to an ApiVersions request of a version that is not served."""
    return Response(error_code=Error.UNSUPPORTED_VERSION, api_keys=[_entry(ApiKey.API_VERSIONS, advertised)])


def _entry(key: int, advertised: Mapping[int, Range]) -> Response.ApiVersion:
    lowest, highest = advertised[key]
    return Response.ApiVersion(api_key=key, min_version=lowest, max_version=highest)

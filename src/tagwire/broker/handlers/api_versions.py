"""ApiVersions (key 18): list the APIs that are served, and their versions.

Versions 0-5. The response to a version that is not served has the layout of version 0, error 35, and the range of
ApiVersions itself (KIP-511). From version 3 a client says what software it is; a name or version that is not of the
form Kafka asks for is refused. From version 5 it also says, if it knows, which broker of which cluster it means; one
that means another is told to begin anew (KIP-1242). Two features are told, each where the release that a broker stands
in for has its APIs: that groups of KIP-848 are switched on, and that transactions are of version 2 (KIP-890).
Source: docs/wire-format.md#apiversions.
"""

from __future__ import annotations

from collections.abc import Mapping

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error
from tagwire.rpc import Range, is_software_text
from tagwire.rpc.version_gates import API_VERSIONS_CLIENT_SOFTWARE, API_VERSIONS_FEATURES_FROM_0
from tagwire.spec.api_keys import ApiKey

Request = messages.ApiVersionsRequest
Response = messages.ApiVersionsResponse

NOT_SAID = -1

GROUP_VERSION = "group.version"
"""The feature that switches the groups of KIP-848 on, at level 1."""

TRANSACTION_VERSION = "transaction.version"
"""The feature that gives each transaction an epoch of its own, at level 2 (KIP-890)."""


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
    response = Response(api_keys=[_entry(key, advertised) for key in sorted(advertised)])
    features = _features(call)
    if features:
        _tell_features(response, call.version, features)
    return response


def _features(call: Call[Request]) -> dict[str, int]:
    """The level of each feature, which is also the highest that there is."""
    settings = call.broker.settings
    levels = {GROUP_VERSION: 1} if settings.has_consumer_groups else {}
    return levels | ({TRANSACTION_VERSION: 2} if settings.has_transaction_v2 else {})


def _tell_features(response: Response, version: int, features: Mapping[str, int]) -> None:
    # Before version 4 a feature that may be off, at level 0, is not told to be supported (KAFKA-17011).
    if version >= API_VERSIONS_FEATURES_FROM_0:
        response.supported_features = [
            Response.SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in features.items()
        ]
    response.finalized_features = [
        Response.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
        for name, level in features.items()
    ]
    response.finalized_features_epoch = 0


def _identity(call: Call[Request]) -> tuple[str, int]:
    return call.broker.cluster_id, call.broker.node_id


def unsupported_version(advertised: Mapping[int, Range]) -> Response:
    """The response, in version 0, to an ApiVersions request of a version that is not served."""
    return Response(error_code=Error.UNSUPPORTED_VERSION, api_keys=[_entry(ApiKey.API_VERSIONS, advertised)])


def _entry(key: int, advertised: Mapping[int, Range]) -> Response.ApiVersion:
    lowest, highest = advertised[key]
    return Response.ApiVersion(api_key=key, min_version=lowest, max_version=highest)

"""ApiVersions (key 18): tell which APIs are served, in which versions.

Versions 0-4. A version that is not served is answered too, in the layout of version 0, with error 35 and the range of
ApiVersions itself (KIP-511). From version 3 a client says what software it is; a name or version that is not of the
form Kafka asks for is refused. Source: facts/kafka_protocol.md 3.3.
"""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.served import SERVED, Call, handles
from tagwire.errors import Error
from tagwire.rpc import is_software_text


@handles(messages.ApiVersionsRequest, versions="0-4")
async def api_versions(call: Call) -> Any:
    request = call.request
    if call.version >= 3:
        named = request.client_software_name, request.client_software_version
        if not all(map(is_software_text, named)):
            return messages.ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
    return messages.ApiVersionsResponse(api_keys=[_entry(key) for key in sorted(SERVED)])


def unsupported_version() -> Any:
    """The answer, in version 0, to an ApiVersions request of a version that is not served."""
    own = messages.ApiVersionsRequest.api_key
    return messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[_entry(own)])


def _entry(key: int) -> Any:
    lowest, highest = SERVED[key].versions
    return messages.ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)

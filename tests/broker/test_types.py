"""A handler that misspells a field, or answers with another API's response, is refused by mypy before it runs."""

from __future__ import annotations

from pathlib import Path

from ..planted_mistakes import assert_mypy_refuses

HANDLER = """\
from tagwire import messages
from tagwire.broker.registry import Call, handles

Request = messages.HeartbeatRequest
Response = messages.HeartbeatResponse


@handles(Request, versions="0-4")
async def heartbeat(call: Call[Request]) -> Response:
    known = call.request.generation_id
    return Response(error_code=known)
"""

# what is right, what stands there instead, what mypy says of it
MISTAKES = [
    ("generation_id", "generation", '"HeartbeatRequest" has no attribute "generation"'),
    ("error_code=", "error=", 'keyword argument "error" for "HeartbeatResponse"'),
    ("error_code=known", 'error_code=""', 'incompatible type "str"; expected "int"'),
    ("handles(Request", "handles(messages.FetchRequest", "Call[HeartbeatRequest]"),
    ("return Response(error_code=known)", "return messages.FetchResponse()", 'got "FetchResponse"'),
]


def test_mypy_sees_a_wrong_field_and_a_wrong_message_in_a_handler(tmp_path: Path) -> None:
    assert_mypy_refuses(tmp_path, HANDLER, MISTAKES)

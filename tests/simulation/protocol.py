"""What goes over a simulated network, in the words of the protocol: a line for each request and each response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tagwire import messages
from tagwire.codec.json_form import is_default
from tagwire.errors import Error, TagwireError
from tagwire.records import memory_records
from tagwire.rpc import api_name
from tagwire.rpc.frames import Frames
from tagwire.rpc.headers import decode_request_header, response_body_position, response_correlation_id
from tagwire.spec import Struct

Place = tuple[str, int]

LONGEST: Final = 600
"""Characters of a message; what follows is left out."""


@dataclass
class _Conversation:
    client: str
    server: str
    asked: Frames = field(default_factory=Frames)
    answered: Frames = field(default_factory=Frames)
    due: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Correlation id -> API and version."""
    client_id: str = ""
    is_lost: bool = False


class Protocol:
    """Follows connections. Whoever sends first on one is its client.

    Args:
        tell: takes each line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._conversations: dict[tuple[Place, Place], _Conversation] = {}

    def sent(self, sender: str, receiver: str, ends: tuple[Place, Place], data: bytes) -> None:
        """`sender` has sent these bytes on the connection between `ends`, its own end first."""
        found = self._conversations.get(ends)
        if found is None and (found := self._conversations.get((ends[1], ends[0]))) is None:
            found = self._conversations[ends] = _Conversation(sender, receiver)
        by_client = ends in self._conversations
        if found.is_lost:
            return
        frames = found.asked if by_client else found.answered
        try:
            frames.receive(data)
            while (frame := frames.next_frame()) is not None:
                self._tell(self._request(found, frame) if by_client else self._response(found, frame))
        except (TagwireError, KeyError) as error:
            found.is_lost = True
            self._tell(f"{found.client} and {found.server} are no longer understood: {error}")

    def _request(self, found: _Conversation, frame: memoryview) -> str:
        header, body = decode_request_header(frame, lenient=True)
        found.due[header.correlation_id] = header.api_key, header.api_version
        kind = messages.request(header.api_key)
        request = kind.decode(frame[body:], header.api_version, lenient=True)
        found.client_id = header.client_id or ""
        what = f"{api_name(header.api_key)} v{header.api_version} #{header.correlation_id}"
        return f"{_who(found)} -> {found.server}: {what} {told(request, header.api_version)}"

    def _response(self, found: _Conversation, frame: memoryview) -> str:
        number = response_correlation_id(frame)
        api, version = found.due.pop(number)
        body = response_body_position(frame, api, version, lenient=True)
        kind = messages.response(api)
        try:
            response = kind.decode(frame[body:], version, lenient=True)
        except TagwireError:
            # A broker that does not have this version of ApiVersions answers in version 0 (KIP-35).
            response, version = kind.decode(frame[body:], 0, lenient=True), 0
        return f"{_who(found)} <- {found.server}: {api_name(api)} v{version} #{number} {told(response, version)}"


def _who(found: _Conversation) -> str:
    return found.client if found.client_id in ("", found.client) else f"{found.client} ({found.client_id})"


def told(message: Any, version: int) -> str:
    """A message's fields as far as they are not at their defaults; batches by their headers."""
    text = _struct(message.spec.root, message, version)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _struct(struct: Struct, value: Any, version: int) -> str:
    parts = []
    for member in struct.fields:
        item = getattr(value, member.attribute)
        if version not in member.versions or is_default(member, item):
            continue
        kind = member.type.element
        items = item if member.type.is_array and item is not None else [item]
        if member.struct is not None:
            words = [_struct(member.struct, one, version) if one is not None else "null" for one in items]
        elif kind == "records":
            words = [_batches(one) for one in items]
        elif kind == "bytes":
            words = [f"<{len(one)} bytes>" for one in items if one is not None]
        elif member.attribute == "error_code":
            words = [_error(one) for one in items]
        else:
            words = [str(one) for one in items]
        text = ", ".join(words)
        parts.append(f"{member.attribute}={f'[{text}]' if member.type.is_array else text}")
    return "{" + " ".join(parts) + "}"


def _error(code: int) -> str:
    try:
        return Error(code).name
    except ValueError:
        return str(code)


def _batches(data: Any) -> str:
    told = []
    for batch in memory_records.read(data, verify=False):
        words = [f"{batch.base_offset}-{batch.last_offset}"]
        if batch.producer_id >= 0:
            words.append(f"of producer {batch.producer_id}/{batch.producer_epoch} from {batch.base_sequence}")
        words += ["transactional"] * batch.is_transactional + ["control"] * batch.is_control
        told.append(" ".join(words))
    return f"<{'; '.join(told)}>"

"""What of a connection's bytes may be kept: all but credentials, which are written over with asterisks.

Lengths stay as they are, and so does whatever is no secret, the names of users too: a capture reads as before. Written
over are passwords and tokens of SASL, whether in SaslAuthenticate or bare, after a SaslHandshake 0 or without any; the
fields that no repr shows either (`tagwire.codec.secrets`): salts and salted passwords, delegation tokens; and what
secret settings are set to. Of a message that holds any of these and cannot be read, everything behind its first fields
is.

Records are data, not credentials: they are kept. So is what is encrypted, and what is no Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, Final

from tagwire import messages
from tagwire.capture.connections import TOKEN_AUTH
from tagwire.codec.annotate import annotate
from tagwire.codec.secrets import SECRET_FIELDS, SETTING_VALUES, SETTINGS, holds_secrets, is_secret
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.rpc.headers import decode_request_header, response_body_position
from tagwire.spec import Field, Message, Struct
from tagwire.spec.api_keys import API_NAMES, ApiKey

MAX_READ: Final = 1 << 20
"""Bytes of the longest message that is read for what is secret in it; a longer one that may hold secrets is written
over as a whole."""

MAX_FRAME: Final = 1 << 30
"""What claims to be longer is no frame, and the connection none of Kafka's."""

MAX_AWAITED: Final = 10_000
"""How many responses with secrets are remembered to be due."""

_SIZE = 4
_REQUEST_HEAD = 12  # size, API key, version, correlation id
_RESPONSE_HEAD = 8  # size, correlation id
_STAR = b"*"

# How many tokens either side sends after a SaslHandshake 0; of other mechanisms nobody knows.
_TOKENS: Final = {"PLAIN": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2, "OAUTHBEARER": 1}

Clean = Callable[[bytearray], None]
"""Writes over what is secret in a whole frame, its size included."""


class Redaction:
    """The two directions of one connection."""

    def __init__(self) -> None:
        self._awaited: dict[int, list[tuple[int, int]]] = {}  # correlation id: API key, version of each request
        self._due = 0  # such responses
        self._is_lost = False
        self._is_first = True
        self._tokens = 0.0  # of the client's, outside of requests
        self._responses = 0.0  # of the broker's
        self._due_responses = 0.0
        self._mechanism: str | None = None  # as the last SaslHandshake names it; None before
        self._mechanism_at: int | None = None  # the correlation id of a SaslHandshake 0
        self._client = _Frames(_REQUEST_HEAD, self._request)
        self._broker = _Frames(_RESPONSE_HEAD, self._response)

    def passed(self, data: bytes, *, by_client: bool) -> bytes:
        """What may be kept now, given what has passed: of a message that may hold secrets nothing before its end."""
        return (self._client if by_client else self._broker).passed(data)

    def ended(self, *, by_client: bool) -> bytes:
        """What is kept of a message that never ended."""
        return (self._client if by_client else self._broker).ended()

    def _request(self, head: bytes) -> Clean | None:
        key, version = _int16(head, 4), _int16(head, 6)
        is_request = len(head) == _REQUEST_HEAD and key in API_NAMES and 0 <= version <= _MOST_VERSIONS
        if self._is_first and not is_request and head[_SIZE : _SIZE + 1] == _GSSAPI and _int32(head, 0) < MAX_READ:
            self._mechanism, self._tokens, self._responses = "GSSAPI", _ANY, _ANY
        self._is_first = False
        if self._tokens and not (self._tokens == _ANY and is_request):
            self._tokens -= 1
            return self._token if _int32(head, 0) < MAX_READ else _clean_all
        if self._tokens:
            self._tokens = self._responses = 0
        if len(head) < _REQUEST_HEAD:
            raise _NoKafka
        if not is_request:
            return None
        if key == ApiKey.SASL_HANDSHAKE:
            self._mechanism = ""  # until the request is there as a whole
            return partial(self._handshake, version=version)
        if _has_secrets(key, in_request=False):
            if self._due < MAX_AWAITED:
                self._awaited.setdefault(_int32(head, 8), []).append((key, version))
                self._due += 1
            else:
                self._is_lost = True
        return partial(_clean_request, mechanism=self._mechanism) if _has_secrets(key, in_request=True) else None

    def _handshake(self, frame: bytearray, version: int) -> None:
        """Secret is nothing in it; but what follows is: bare tokens after version 0."""
        try:
            _, body = decode_request_header(memoryview(frame)[_SIZE:], lenient=True)
            kind: Any = messages.request(ApiKey.SASL_HANDSHAKE)
            self._mechanism = kind.decode(bytes(frame[_SIZE + body :]), version, lenient=True).mechanism
        except (DecodeError, UnsupportedVersionError):
            self._mechanism = ""
        if version == 0:
            tokens = _TOKENS.get(self._mechanism or "", _ANY)
            self._tokens, self._due_responses, self._mechanism_at = tokens, tokens, _int32(frame, 8)

    def _token(self, frame: bytearray) -> None:
        _over(frame, _SIZE + _named(bytes(frame[_SIZE:]), self._mechanism), len(frame))

    def _response(self, head: bytes) -> Clean | None:
        if self._responses:
            self._responses -= 1
            return _clean_all
        if len(head) < _RESPONSE_HEAD:
            raise _NoKafka
        correlation = _int32(head, _SIZE)
        if correlation == self._mechanism_at:
            self._responses, self._mechanism_at = self._due_responses, None
            return None
        requests = self._awaited.get(correlation)
        if requests is None:
            return _clean_body if self._is_lost else None
        request = requests.pop(0)
        self._due -= 1
        if not requests:
            del self._awaited[correlation]
        return partial(self._answer, correlation=correlation, request=request)

    def _answer(self, frame: bytearray, correlation: int, request: tuple[int, int]) -> None:
        if not _clean_response(frame, *request):  # another's of the same id, and this request's is still to come
            self._awaited.setdefault(correlation, []).insert(0, request)
            self._due += 1


_ANY: Final = float("inf")
_GSSAPI: Final = b"\x60"
"""How the first token of GSSAPI begins, which clients of Kafka 0.9 send without a handshake. Source: Kafka's
SaslServerAuthenticator."""
_MOST_VERSIONS: Final = 40


class _NoKafka(Exception):
    """A frame that is too short for any of Kafka's: what passes is something else, in which nothing can be found."""


class _Frames:
    """One direction, frame by frame.

    Args:
        head: how many bytes of a frame tell what it is.
        judge: how to clean the frame that begins so; None where nothing in it is secret. Raises _NoKafka.
    """

    def __init__(self, head: int, judge: Callable[[bytes], Clean | None]) -> None:
        self._head_size = head
        self._judge = judge
        self._begun = bytearray()  # a frame's beginning, or a frame that is to be cleaned, as far as it is there
        self._left = 0  # bytes of the frame that pass
        self._over = False  # whether they are written over
        self._clean: Clean | None = None
        self._size = 0
        self._is_kafka = True

    def passed(self, data: bytes) -> bytes:
        if not self._is_kafka:
            return data
        if self._left >= len(data) and not self._over:  # the middle of something large
            self._left -= len(data)
            return data
        kept = bytearray()
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                kept += _STAR * len(piece) if self._over else piece
                at, self._left = at + len(piece), self._left - len(piece)
            else:
                at += self._begin(data, at, kept)
                if not self._is_kafka:
                    kept += data[at:]
                    break
        return bytes(kept)

    def ended(self) -> bytes:
        begun, self._begun = self._begun, bytearray()
        self._clean = None
        _over(begun, _SIZE, len(begun))
        return bytes(begun)

    def _begin(self, data: bytes, at: int, kept: bytearray) -> int:
        """Takes bytes of a frame's beginning, or of one that is to be cleaned; how many."""
        wanted = self._size if self._clean is not None else self._wanted()
        piece = data[at : at + wanted - len(self._begun)]
        self._begun += piece
        if len(self._begun) < wanted:
            return len(piece)
        if self._clean is not None:
            self._clean(self._begun)
            self._clean = None
            self._pass(kept)
        elif wanted == self._wanted():  # it is all there that tells what the frame is
            self._size = _SIZE + _int32(self._begun, 0)
            if not _SIZE <= self._size <= MAX_FRAME:
                self._is_kafka = False
                self._pass(kept)
            else:
                self._judged(kept)
        return len(piece)

    def _judged(self, kept: bytearray) -> None:
        try:
            clean = self._judge(bytes(self._begun))
        except _NoKafka:
            self._is_kafka = False
            self._pass(kept)
            return
        if clean is not None and self._size <= MAX_READ:
            if len(self._begun) == self._size:
                clean(self._begun)
                self._pass(kept)
            else:
                self._clean = clean
            return
        if clean is _clean_all:
            _over(self._begun, _SIZE, len(self._begun))
        self._over = clean is not None
        self._left = self._size - len(self._begun)
        self._pass(kept)

    def _wanted(self) -> int:
        """Bytes that tell what the frame is: fewer of one that is shorter."""
        if len(self._begun) < _SIZE:
            return _SIZE
        size = _int32(self._begun, 0)
        return _SIZE + min(size, self._head_size - _SIZE) if 0 <= size <= MAX_FRAME else _SIZE

    def _pass(self, kept: bytearray) -> None:
        kept += self._begun
        self._begun = bytearray()


def _clean_request(frame: bytearray, mechanism: str | None) -> None:
    try:
        header, body = decode_request_header(memoryview(bytes(frame))[_SIZE:], lenient=True)
        _clean_message(frame, _SIZE + body, _request_of(header.api_key), header.api_version, mechanism)
    except (DecodeError, UnsupportedVersionError):
        _over(frame, _REQUEST_HEAD, len(frame))


def _clean_response(frame: bytearray, key: int, version: int) -> bool:
    """Whether it could be read."""
    try:
        body = response_body_position(memoryview(bytes(frame))[_SIZE:], key, version, lenient=True)
        _clean_message(frame, _SIZE + body, _response_of(key), version)
    except (DecodeError, UnsupportedVersionError):
        _over(frame, _RESPONSE_HEAD, len(frame))
        return False
    return True


def _clean_message(frame: bytearray, at: int, message: Message, version: int, mechanism: str | None = None) -> None:
    """Writes over the secrets of a message that begins at `at` and ends with the frame. Raises as `annotate`."""
    settings: dict[str, dict[str, tuple[int, int]]] = {}  # path of a setting: where its attributes stand
    secrets: list[tuple[int, int]] = []
    for span in annotate(message, bytes(frame[at:]), version):
        prefix, _, attribute = span.path.rpartition(".")
        struct = _struct_at(message, prefix)
        field = next((field for field in struct.fields if field.attribute == attribute), None)
        if field is None or field.type.is_array:
            continue
        place = at + span.start, at + span.end
        if (struct.name, field.name) in SECRET_FIELDS:
            secrets.append(_content(frame, *place, field, message.is_flexible(version)))
        elif struct.name in SETTINGS:
            texts = field.type.element in ("string", "bytes")
            found = _content(frame, *place, field, message.is_flexible(version)) if texts else place
            settings.setdefault(prefix, {})[attribute] = found
    hidden: set[str] = set()
    for prefix, setting in sorted(settings.items()):  # a setting before its synonyms
        told = {name: bytes(frame[slice(*place)]) for name, place in setting.items()}
        name = (told.get("name") or told.get("key") or b"").decode("utf-8", "replace")
        is_sensitive = told.get("is_sensitive") == b"\1" or prefix.rpartition(".")[0] in hidden
        if is_secret(SimpleNamespace(name=name, is_sensitive=is_sensitive)):
            hidden.add(prefix)
            secrets += [place for attribute, place in setting.items() if attribute in SETTING_VALUES]
    for start, end in secrets:
        if message.name == "SaslAuthenticateRequest":
            start += _named(bytes(frame[start:end]), mechanism)
        _over(frame, start, end)


def _content(frame: bytearray, start: int, end: int, field: Field, flexible: bool) -> tuple[int, int]:
    """Where the bytes of a string or of bytes stand, behind their length."""
    if not flexible:
        return min(start + (2 if field.type.element == "string" else 4), end), end
    while frame[start] & 0x80:
        start += 1
    return start + 1, end


def _clean_all(frame: bytearray) -> None:
    _over(frame, _SIZE, len(frame))


def _clean_body(frame: bytearray) -> None:
    _over(frame, _RESPONSE_HEAD, len(frame))


def _named(token: bytes, mechanism: str | None) -> int:
    """How many bytes at the start of a SASL token say who it is, and nothing of how that is proved: of PLAIN all before
    the password, of SCRAM's first message all before the nonce, unless a delegation token comes in by it. Of any other
    mechanism's, and of what is no text, none: a token of GSSAPI may have two zeros, too.

    Args:
        mechanism: None where no SaslHandshake was seen: then the token's form says which it is.
    """
    size = 0
    if mechanism in ("PLAIN", None) and token.count(b"\0") == 2:
        size = token.rindex(b"\0") + 1
    elif (mechanism is None or mechanism.startswith("SCRAM-")) and token[:2] in (b"n,", b"y,") and b",r=" in token:
        parts = token.split(b",")
        is_users = len(parts) > 2 and parts[2][:2] == b"n=" and TOKEN_AUTH.encode() not in parts
        size = token.index(b",r=") + 3 if is_users else 0
    try:
        return size if token[:size].decode().replace("\0", "").isprintable() else 0
    except UnicodeDecodeError:
        return 0


def _over(frame: bytearray, start: int, end: int) -> None:
    frame[start:end] = _STAR * max(end - start, 0)


def _struct_at(message: Message, path: str) -> Struct:
    struct = message.root
    for name in filter(None, path.split(".")):
        field = next(field for field in struct.fields if field.attribute == name.partition("[")[0])
        assert field.struct is not None
        struct = field.struct
    return struct


@cache
def _has_secrets(key: int, *, in_request: bool) -> bool:
    return holds_secrets((_request_of if in_request else _response_of)(key).root)


@cache
def _request_of(key: int) -> Message:
    return messages.request(key).spec


@cache
def _response_of(key: int) -> Message:
    return messages.response(key).spec


def _int16(data: bytes | bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def _int32(data: bytes | bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big", signed=True)

"""Kafka's request log (`kafka.request.logger` at DEBUG) as observations, in every form it has had.

| Kafka        | after "Completed request:", and before " from connection " in the older forms            |
|--------------|------------------------------------------------------------------------------------------|
| 2.8 and on   | a JSON object (KIP-673)                                                                  |
| 1.0 to 2.7   | RequestHeader(apiKey=PRODUCE, apiVersion=8, clientId=c, correlationId=6) -- {...}        |
| 0.10, 0.11   | {api_key=0,api_version=2,correlation_id=6,client_id=c} -- {...}                          |
| 0.8, 0.9     | Name: FetchRequest; Version: 0; CorrelationId: 6; ClientId: c; ...                       |

0.9 writes the requests of groups as 0.10 does, and 0.8 has " from client ". What stands before is the log's own
pattern: only a time is looked for there. A line may also be the text inside a JSON object, as log shippers wrap it
(`message`, `log` or `msg`). Other lines are noise, and counted; a request's line that is cut short or broken is counted
as such. Source: Kafka's RequestConvertToJson and RequestChannel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from tagwire.capture.observation import Endpoint, Losses, Observation, Place
from tagwire.extras import Needs
from tagwire.kernel.packets import LAST_SECOND
from tagwire.rpc.ranges import Range
from tagwire.spec.api_keys import API_NAMES, ApiKey

with Needs("audit"):
    import msgspec

MARK: Final = b"Completed request:"
"""What every line of a completed request has."""

NOISE: Final = "a line that tells of no request"
BROKEN: Final = "a request's line that is cut short or broken"
LONG: Final = "a line that is longer than is read"
FORWARDED: Final = "a request that a broker handed on to the controller, counted where it came in"

MAX_LINE_BYTES: Final = 64 << 20

_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?")
_CONNECTION: Final = re.compile(r"(.+):(\d{1,5})-(.+):(\d{1,5}?)(?:-\d+){0,2}", re.ASCII)
_CLIENT_ALONE: Final = re.compile(r"[^/]*/(.+):(\d{1,5})", re.ASCII)
_MAX_CONNECTION: Final = 300
_ERROR_CODE: Final = re.compile(rb'"errorCode":\s*(-?\d{1,5})\b|\berror_?[cC]ode=(-?\d{1,5})\b')

_TEXT_HEADERS: Final = (
    re.compile(
        rb"RequestHeader\(apiKey=(?P<api>\w{1,64}), apiVersion=(?P<version>-?\d{1,5}), clientId=(?P<client_id>.*?), "
        rb"correlationId=-?\d+(?:, headerVersion=\d+)?\)"
    ),
    re.compile(
        rb"\{api_key=(?P<api>\d{1,5}),api_version=(?P<version>-?\d{1,5}),correlation_id=-?\d+,"
        rb"client_id=(?P<client_id>.*?)\} --"
    ),
    re.compile(
        rb"Name: ?(?P<api>\w{1,64}?)(?:Request)?; ?Version: ?(?P<version>-?\d{1,5})"
        rb"(?:;.*?ClientId: ?(?P<client_id>[^;]*))?"  # ControlledShutdown 0 has none
    ),
)
_FROM: Final = b" from connection "
_FROM_CLIENT: Final = b" from client "  # 0.8
_PRINCIPAL: Final = b",principal:"
# What may end a line of the older forms, from its last part to its first: how each begins, and all of it.
_TEXT_ENDS: Final = (
    (b" (", re.compile(rb" \([\w.$]+\)")),  # the log's own name
    (b",messageConversionsTime:", re.compile(rb",messageConversionsTime:[\d.]+")),
    (b",temporaryMemoryBytes:", re.compile(rb",temporaryMemoryBytes:[\d.]+")),
    (
        b",clientInformation:",
        re.compile(
            rb",clientInformation:ClientInformation"
            rb"\(softwareName=(?P<name>[^,]*), softwareVersion=(?P<software>[^)]*)\)"
        ),
    ),
    (b",listener:", re.compile(rb",listener:(?P<listener>\w*)")),
)

_TEXT_OFFER: Final = re.compile(rb"\{api_key=(\d{1,5}),min_version=(\d{1,5}),max_version=(\d{1,5})")
_TEXT_SOFTWARE: Final = re.compile(
    rb" -- \{client_software_name=(?P<name>[^,]*),client_software_version=(?P<software>[^,]*),_tagged_fields="
)
_LEAST: Final = -32768
_MOST: Final = 32767
# RecursionError: what is nested deeper than any reader goes.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# The names of Kafka's enum, and those by which old releases called what has another name since.
_KEYS: Final = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): key for key, name in API_NAMES.items()} | {
    "GROUP_COORDINATOR": ApiKey.FIND_COORDINATOR,
    "CONSUMER_METADATA": ApiKey.FIND_COORDINATOR,
    "OFFSETS": ApiKey.LIST_OFFSETS,
    "OFFSET": ApiKey.LIST_OFFSETS,
    "PRODUCER": ApiKey.PRODUCE,
    "TOPIC_METADATA": ApiKey.METADATA,
    "ELECT_PREFERRED_LEADERS": ApiKey.ELECT_LEADERS,
    "ALTER_ISR": ApiKey.ALTER_PARTITION,
    "LIST_CLIENT_METRICS_RESOURCES": ApiKey.LIST_CONFIG_RESOURCES,
}


class _Header(msgspec.Struct, rename="camel"):
    request_api_key: int
    request_api_version: int
    client_id: str | None = None


class _Client(msgspec.Struct, rename="camel"):
    software_name: str = ""
    software_version: str = ""


class _Line(msgspec.Struct, rename="camel"):
    """The part of a KIP-673 object that is of use here; msgspec skips the rest without building it."""

    request_header: _Header
    connection: str
    is_forwarded: bool = False
    request: msgspec.Raw = msgspec.Raw(b"")
    response: msgspec.Raw = msgspec.Raw(b"")
    principal: str | None = ""
    listener: str | None = ""
    client_information: _Client | None = None


class _Offered(msgspec.Struct, rename="camel"):
    api_key: int
    min_version: int
    max_version: int


class _ApiVersionsRequest(msgspec.Struct, rename="camel"):
    client_software_name: str = ""
    client_software_version: str = ""


class _ApiVersionsResponse(msgspec.Struct, rename="camel"):
    api_keys: list[_Offered] = []


class _Wrapped(msgspec.Struct):
    """What a shipper's object may hold a line in."""

    message: msgspec.Raw = msgspec.Raw(b"")
    log: msgspec.Raw = msgspec.Raw(b"")
    msg: msgspec.Raw = msgspec.Raw(b"")


_decode_wrapped: Final = msgspec.json.Decoder(_Wrapped).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_decode_line: Final = msgspec.json.Decoder(_Line).decode
_decode_request: Final = msgspec.json.Decoder(_ApiVersionsRequest).decode
_decode_response: Final = msgspec.json.Decoder(_ApiVersionsResponse).decode


def observations(
    lines: Iterable[bytes], file: str, losses: Losses, *, start: int = 0, timezone: tzinfo = UTC
) -> Iterator[Observation]:
    """The requests that the lines of a log tell of, in their order.

    Args:
        lines: with their ends, as a binary file yields them; those that are too long may come in pieces.
        file: the log's path, for the evidence.
        losses: counts what is not understood.
        start: the position of the first line.
        timezone: of times that do not say theirs.
    """
    return (seen for seen, _ in told(lines, file, losses, start=start, timezone=timezone))


def told(
    lines: Iterable[bytes], file: str, losses: Losses, *, start: int = 0, timezone: tzinfo = UTC
) -> Iterator[tuple[Observation, bytes]]:
    """The same, each with what its line has after `MARK`."""
    position, is_rest = start, False
    for line in lines:
        place = Place(file, position)
        position += len(line)
        if is_rest or len(line) > MAX_LINE_BYTES:
            if not is_rest:
                losses.add(LONG, place)
            is_rest = not line.endswith(b"\n")  # a line that was cut up goes on in the next
            continue
        mark = line.find(MARK)
        if mark < 0:
            if line.strip():
                losses.add(NOISE, place)
            continue
        if line.startswith(b"{"):
            line = _unwrapped(line)
            mark = line.find(MARK)
        if mark < 0:
            losses.add(BROKEN, place)
            continue
        body = line[mark + len(MARK) :].lstrip()
        found = _observation(body, _time(line[:mark], timezone), place)
        if isinstance(found, str):
            losses.add(found, place)
        else:
            yield found, body


def _observation(body: bytes, when: int, place: Place) -> Observation | str:
    """What a line tells, or why it tells nothing."""
    if body.startswith(b"{") and not body.startswith(b"{api_key="):
        return _json(body, when, place)
    return _text(body, when, place)


def _json(body: bytes, when: int, place: Place) -> Observation | str:
    end = body.rfind(b"}") + 1
    try:
        line = _decode_line(body[:end])
        software, offered = _software(line), _offered(line)
    except _UNREADABLE:
        return BROKEN
    ends, header = _ends(line.connection), line.request_header
    names = (header.client_id, *software, line.principal, line.listener)
    if ends is None or not _fits(header.request_api_key, header.request_api_version, *names):
        return BROKEN
    if line.is_forwarded:
        return FORWARDED
    return Observation(
        time=when,
        client=ends[0],
        broker=ends[1],
        client_id=header.client_id,
        software_name=_known(software[0]),
        software_version=_known(software[1]),
        principal=line.principal or "",
        listener=line.listener or "",
        api_key=header.request_api_key,
        api_version=header.request_api_version,
        error_codes=_error_codes(bytes(line.response)) if _is_there(line.response) else None,
        offered=offered,
        place=place,
    )


def _is_there(message: msgspec.Raw) -> bool:
    """Whether the log has a request's or a response's object: of what there is not, it has an empty text."""
    return bytes(memoryview(message)[:1]) == b"{"


def _software(line: _Line) -> tuple[str, str]:
    """Of the request that tells it, the log does not know it yet."""
    if line.request_header.request_api_key == ApiKey.API_VERSIONS and _is_there(line.request):
        request = _decode_request(line.request)
        return request.client_software_name, request.client_software_version
    told = line.client_information or _Client()
    return told.software_name, told.software_version


def _offered(line: _Line) -> dict[int, Range] | None:
    if line.request_header.request_api_key != ApiKey.API_VERSIONS or not _is_there(line.response):
        return None
    listed = _decode_response(line.response).api_keys
    return _ranges((api.api_key, api.min_version, api.max_version) for api in listed)


def _ranges(listed: Iterable[tuple[int, ...]]) -> dict[int, Range] | None:
    """Of the (API, lowest, highest) that may be; None where there is none."""
    return {api: (low, high) for api, low, high in listed if _fits(api, low) and _fits(api, high)} or None


def _text(body: bytes, when: int, place: Place) -> Observation | str:
    begins, ended = connection_in(body)
    header = next((match for pattern in _TEXT_HEADERS if (match := pattern.match(body, 0, begins))), None)
    if header is None:
        return BROKEN
    tail = _tail(body[ended:])
    api, version = _api(header["api"].decode()), int(header["version"])
    client_id = None if header["client_id"] is None else _decoded(header["client_id"])
    ends = _ends(tail["connection"])
    if api is None or ends is None or not _fits(api, version, client_id, tail["principal"]):
        return BROKEN
    response_at = body.rfind(b"response:", 0, begins)
    response = None if response_at < 0 else body[response_at:begins]
    # As in JSON, the request that tells the software tells it itself.
    told = _TEXT_SOFTWARE.match(body, header.end()) if api == ApiKey.API_VERSIONS else None
    software = (
        (tail["name"], tail["software"]) if told is None else tuple(map(_decoded, told.group("name", "software")))
    )
    return Observation(
        time=when,
        client=ends[0],
        broker=ends[1],
        client_id=client_id,
        software_name=_known(software[0]),
        software_version=_known(software[1]),
        principal=tail["principal"],
        listener=tail["listener"],
        api_key=api,
        api_version=version,
        error_codes=None if response is None else _error_codes(response),
        offered=_text_offered(response) if api == ApiKey.API_VERSIONS and response is not None else None,
        place=place,
    )


def connection_in(body: bytes) -> tuple[int, int]:
    """Where of a text a request and its response end, and where its connection begins; (0, 0) where it has none."""
    for mark in (_FROM, _FROM_CLIENT):
        begins = body.rfind(mark)
        if begins >= 0:
            return begins, begins + len(mark)
    return 0, 0


def _text_offered(response: bytes) -> dict[int, Range] | None:
    return _ranges(tuple(map(int, offer.groups())) for offer in _TEXT_OFFER.finditer(response))


def _tail(tail: bytes) -> dict[str, str]:
    """What stands after " from connection ". It is taken apart from its end, since a principal may have commas; each
    part is looked for once, however long the line is."""
    tail = tail.rstrip()
    told: dict[str, bytes] = {}
    end = len(tail)
    for mark, pattern in _TEXT_ENDS:
        at = tail.rfind(mark, 0, end)
        part = pattern.fullmatch(tail, at, end) if at >= 0 else None
        if part is not None:
            told.update(part.groupdict())
            end = at
    told["connection"] = tail[:end].partition(b";")[0]
    told["principal"] = tail[:end].partition(_PRINCIPAL)[2]
    names = ("connection", "principal", "listener", "name", "software")
    return {name: told.get(name, b"").decode("utf-8", "replace") for name in names}


def _api(name: str) -> int | None:
    if name.isdigit():
        return int(name)
    if name in _KEYS:
        return _KEYS[name]
    return _KEYS.get(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper())


def _fits(api: int, version: int, *names: str | None) -> bool:
    """Whether a request may have these: numbers have 16 bits, and no name is longer than a string of the protocol."""
    return 0 <= api <= _MOST and _LEAST <= version <= _MOST and all(len(name or "") <= _MOST for name in names)


def _known(text: str) -> str:
    """Kafka writes "unknown" where the client told nothing."""
    return "" if text == "unknown" else text


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _error_codes(response: bytes) -> tuple[int, ...]:
    codes = {int(match[1] or match[2]) for match in _ERROR_CODE.finditer(response)}
    return tuple(sorted(code for code in codes if code and _LEAST <= code <= _MOST))


def _ends(connection: str) -> tuple[Endpoint, Endpoint] | None:
    """Client and broker of a connection id: broker's address, client's address, and the numbers of Kafka's own. 0.8
    tells the client's address alone."""
    return _known_ends(connection) if len(connection) <= _MAX_CONNECTION else None


@lru_cache(4096)
def _known_ends(connection: str) -> tuple[Endpoint, Endpoint] | None:
    match = _CONNECTION.fullmatch(connection)
    if match is None:
        return _client_alone(connection)
    broker_port, client_port = int(match[2]), int(match[4])
    if max(broker_port, client_port) > 65535:
        return None
    return Endpoint(_address(match[3]), client_port), Endpoint(_address(match[1]), broker_port)


def _client_alone(connection: str) -> tuple[Endpoint, Endpoint] | None:
    """Of a client's address alone, as Java writes one: a host's name, where it is known, stands before a slash."""
    match = _CLIENT_ALONE.fullmatch(connection)
    if match is None or int(match[2]) > 65535:
        return None
    return Endpoint(_address(match[1]), int(match[2])), Endpoint()


def _address(text: str) -> str:
    """An address as packets have it, if it is one: Java writes the zeros of IPv6 out, and a client would be two."""
    bare = text.strip("[]")
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare


def _time(prefix: bytes, timezone: tzinfo) -> int:
    match = _TIME.search(prefix)
    if match is None:
        return -1
    second = _second(match[1].decode(), match[2].decode(), (match[4] or b"").decode(), timezone)
    if second is None:
        return -1
    fraction = (match[3] or b"").decode()
    return second * 1_000_000 + int(fraction[:6].ljust(6, "0"))


@lru_cache(1024)
def _second(date: str, clock: str, zone: str, timezone: tzinfo) -> int | None:
    try:
        when = datetime.fromisoformat(f"{date}T{clock}{zone}")
        second = int((when if when.tzinfo else when.replace(tzinfo=timezone)).timestamp())
    except (ValueError, OverflowError):
        return None
    return second if 0 <= second <= LAST_SECOND else None


def _unwrapped(line: bytes) -> bytes:
    """The log's own line out of a shipper's JSON object; the line itself where it is none."""
    try:
        outer = _decode_wrapped(line)
        texts = (
            _decode_text(one) for one in (outer.message, outer.log, outer.msg) if bytes(memoryview(one)[:1]) == b'"'
        )
        text = next((text for text in texts if MARK.decode() in text), None)
    except _UNREADABLE:
        return line
    return line if text is None else text.encode()

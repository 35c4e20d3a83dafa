"""Captures made for tests: Kafka's frames in TCP segments, in packets that dpkt writes."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import dpkt

from tagwire import messages
from tagwire.capture import Exchange, Losses
from tagwire.capture.connections import requests_in
from tagwire.capture.exchange import exchanges
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header

CLIENT, BROKER = ("10.0.0.9", 61040), ("10.0.0.1", 9092)
SIX = ("fd00::9", 61040), ("fd00::1", 9092)
START = 1_700_000_000.0

Piece = tuple[bool, int, bytes, int]
"""Whether the client sends it, its sequence, its payload, its flags."""


def request(message: Any, version: int, correlation_id: int, client_id: str | None = "billing") -> bytes:
    """A request's frame, with its size."""
    header = encode_request_header(RequestHeader(message.spec.api_key, version, correlation_id, client_id))
    body = header + message.encode(version)
    return len(body).to_bytes(4, "big") + body


def response(message: Any, version: int, correlation_id: int) -> bytes:
    """An answer's frame, with its size."""
    body = encode_response_header(message.spec.api_key, version, correlation_id) + message.encode(version)
    return len(body).to_bytes(4, "big") + body


def asks(correlation_id: int = 1, software: str = "librdkafka", version: str = "1.2.3") -> bytes:
    asked = messages.ApiVersionsRequest(client_software_name=software, client_software_version=version)
    return request(asked, 3, correlation_id)


def offers(correlation_id: int = 1, **ranges: tuple[int, int]) -> bytes:
    """An answer to ApiVersions: ranges by the API's name."""
    listed = [
        messages.ApiVersionsResponse.ApiVersion(api_key=key(name), min_version=low, max_version=high)
        for name, (low, high) in (ranges or {"Produce": (0, 11)}).items()
    ]
    return response(messages.ApiVersionsResponse(api_keys=listed), 3, correlation_id)


def key(name: str) -> int:
    return int(getattr(messages, f"{name}Request").spec.api_key)


@dataclass
class Talk:
    """One connection, written down as segments."""

    ends: tuple[tuple[str, int], tuple[str, int]] = (CLIENT, BROKER)
    pieces: list[Piece] = field(default_factory=list)
    _sequences: list[int] = field(default_factory=lambda: [1000, 2000])

    def open(self) -> Talk:
        self.pieces.append((True, self._sequences[0] - 1, b"", dpkt.tcp.TH_SYN))
        self.pieces.append((False, self._sequences[1] - 1, b"", dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK))
        return self

    def client(self, data: bytes, size: int = 1000) -> Talk:
        return self._send(True, data, size)

    def broker(self, data: bytes, size: int = 1000) -> Talk:
        return self._send(False, data, size)

    def _send(self, by_client: bool, data: bytes, size: int) -> Talk:
        side = 0 if by_client else 1
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            self.pieces.append((by_client, self._sequences[side] % 2**32, piece, dpkt.tcp.TH_ACK))
            self._sequences[side] += len(piece)
        return self

    def start_at(self, client: int, broker: int) -> Talk:
        self._sequences = [client, broker]
        return self

    def packets(self) -> list[bytes]:
        """Each piece as an Ethernet frame."""
        return [bytes(ethernet(self.ends, piece)) for piece in self.pieces]


def ip(ends: Sequence[tuple[str, int]], piece: Piece) -> dpkt.ip.IP | dpkt.ip6.IP6:
    by_client, sequence, payload, flags = piece
    (source, source_port), (target, target_port) = ends if by_client else (ends[1], ends[0])
    tcp = dpkt.tcp.TCP(sport=source_port, dport=target_port, seq=sequence, flags=flags, data=payload)
    if ":" in source:
        packed = [socket.inet_pton(socket.AF_INET6, one) for one in (source, target)]
        return dpkt.ip6.IP6(src=packed[0], dst=packed[1], nxt=6, plen=len(tcp), data=tcp)
    return dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(target), p=6, data=tcp)


def ethernet(ends: Sequence[tuple[str, int]], piece: Piece) -> dpkt.ethernet.Ethernet:
    inner = ip(ends, piece)
    kind = 0x0800 if isinstance(inner, dpkt.ip.IP) else 0x86DD
    return dpkt.ethernet.Ethernet(type=kind, data=inner)


def pcap(frames: Iterable[bytes], link_type: int = dpkt.pcap.DLT_EN10MB) -> bytes:
    """A pcap file, a packet a millisecond."""
    out = io.BytesIO()
    writer = dpkt.pcap.Writer(out, linktype=link_type, snaplen=262144)
    for at, frame in enumerate(frames):
        writer.writepkt(frame, ts=START + at / 1000)
    return out.getvalue()


def seen(capture: bytes, *, bodies: bool = False) -> tuple[list[Exchange], Losses]:
    """The exchanges in a capture file, and what was lost."""
    losses = Losses()
    found = requests_in(io.BytesIO(capture), "capture", losses, requests=bodies, responses=bodies)
    return [one for rows in found for one in exchanges(rows, "capture")], losses


def names(found: Iterable[Exchange]) -> list[tuple[int, int, int]]:
    """(API, version, correlation id) of each."""
    return [(one.header.api_key, one.header.api_version, one.header.correlation_id) for one in found]


def talk_frames() -> list[bytes]:
    """The packets of a client that asks for versions and is answered."""
    return Talk().open().client(asks()).broker(offers()).packets()

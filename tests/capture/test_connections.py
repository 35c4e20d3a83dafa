"""Packets in, exchanges out: whatever the network and the capture did to them."""

from __future__ import annotations

import io
import random

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import messages
from tagwire.capture import Endpoint
from tagwire.capture.bodies import error_codes, offered, response_of
from tagwire.capture.connections import CUT, FRAGMENT, LINK, NOT_KAFKA, OUT_OF_STEP, TLS, UNMATCHED, user_of

from .traffic import BROKER, CLIENT, SIX, Piece, Talk, asks, ethernet, ip, names, offers, pcap, request, response, seen

Metadata = messages.MetadataRequest
MetadataAnswer = messages.MetadataResponse


def talk(ends: tuple[tuple[str, int], tuple[str, int]] = (CLIENT, BROKER)) -> Talk:
    """A client that asks for versions and then for metadata, twice."""
    spoken = Talk(ends).open().client(asks(1)).broker(offers(1, Metadata=(0, 12)))
    for correlation_id in (2, 3):
        spoken.client(request(Metadata(topics=None), 12, correlation_id))
        spoken.broker(response(MetadataAnswer(cluster_id="c"), 12, correlation_id))
    return spoken


EXPECTED = [(18, 3, 1), (3, 12, 2), (3, 12, 3)]


def test_requests_are_told_with_their_answers_their_client_and_its_software() -> None:
    found, losses = seen(pcap(talk().packets()))
    assert names(found) == EXPECTED
    last = found[-1]
    assert (last.client, last.broker) == (Endpoint(*CLIENT), Endpoint(*BROKER))
    assert (last.header.client_id, last.software_name, last.software_version) == ("billing", "librdkafka", "1.2.3")
    assert last.request_bytes == len(request(Metadata(topics=None), 12, 3))
    assert last.response_bytes == len(response(MetadataAnswer(cluster_id="c"), 12, 3))
    assert last.responded - last.time == 1000
    assert offered(found[0], losses) == {3: (0, 12)}
    assert offered(last, losses) is None
    assert not losses.counts


@pytest.mark.parametrize("ends", [(CLIENT, BROKER), SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("size", [1, 3, 17])
def test_frames_may_be_split_anywhere(ends: tuple[tuple[str, int], tuple[str, int]], size: int) -> None:
    spoken = Talk(ends).open().client(asks(1), size).broker(offers(1), size)
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(18, 3, 1)]
    assert found[0].client == Endpoint(*ends[0])
    assert not losses.counts


def test_many_frames_may_be_in_one_packet() -> None:
    requests = b"".join(request(Metadata(topics=None), 12, at) for at in range(20))
    answers = b"".join(response(MetadataAnswer(), 12, at) for at in range(20))
    found, _ = seen(pcap(Talk().open().client(requests, 60_000).broker(answers, 60_000).packets()))
    assert names(found) == [(3, 12, at) for at in range(20)]


@given(st.randoms(use_true_random=False), st.booleans())
def test_segments_that_come_late_twice_or_overlapping_change_nothing(chance: random.Random, wraps: bool) -> None:
    spoken = Talk()
    if wraps:
        spoken.start_at(2**32 - 20, 2**32 - 30)
    spoken.open()
    spoken.client(asks(1) + b"".join(request(Metadata(topics=None), 12, at) for at in range(2, 6)), 13)
    spoken.broker(offers(1) + b"".join(response(MetadataAnswer(), 12, at) for at in range(2, 6)), 11)
    pieces = list(spoken.pieces[2:])
    for by_client, sequence, payload, flags in chance.sample(pieces, 5):
        more = chance.randrange(1, len(payload) + 1)
        pieces.append((by_client, sequence, payload[:more], flags))
        pieces.append((by_client, (sequence + more) % 2**32, payload[more:], flags))
    at = list(range(len(pieces)))
    shuffled = [pieces[number] for number in sorted(at, key=lambda number: number + chance.uniform(0, 12))]
    spoken.pieces[2:] = shuffled
    found, losses = seen(pcap(spoken.packets()))
    assert sorted(names(found)) == sorted([(18, 3, 1)] + [(3, 12, number) for number in range(2, 6)])
    assert not losses.counts


def test_a_connection_met_in_the_middle_is_followed_from_its_next_request() -> None:
    spoken = talk()
    spoken.pieces = spoken.pieces[3:]  # neither the SYN nor the request for versions
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == EXPECTED[1:]
    assert found[0].software_name == ""
    assert sum(losses.counts.values()) <= 1


@pytest.mark.parametrize("first", [5, 12, 3 << 16 | 5, 70_000])
@pytest.mark.parametrize("times", [1, 2], ids=["each packet once", "each packet twice"])
def test_a_response_that_is_seen_first_is_not_taken_for_a_request_whatever_its_correlation_id(
    first: int, times: int
) -> None:
    """Its number stands where a request has its API and version, and zeros where that has an empty client id."""
    spoken = Talk()
    for number in range(first, first + 3):
        spoken.broker(response(messages.FetchResponse(), 12, number))
        spoken.client(request(messages.FetchRequest(), 12, number + 1))
    found, losses = seen(pcap([packet for packet in spoken.packets() for _ in range(times)]))
    assert names(found) == [(1, 12, first + at) for at in (1, 2, 3)]
    assert {one.client for one in found} == {Endpoint(*CLIENT)}
    assert not losses.counts


@pytest.mark.parametrize("client_id", ["", None])
def test_a_client_without_a_name_is_known_in_the_middle_of_a_connection_by_its_second_request(
    client_id: str | None,
) -> None:
    spoken = Talk()
    for number in (7, 8, 9):
        spoken.client(request(Metadata(topics=None), 12, number, client_id))
        spoken.broker(response(MetadataAnswer(), 12, number))
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(3, 12, 8), (3, 12, 9)]
    assert {(one.client, one.header.client_id) for one in found} == {(Endpoint(*CLIENT), client_id)}
    assert sum(losses.counts.values()) <= 1


def test_a_request_whose_header_has_no_client_id_is_told_without_one_also_in_the_middle_of_a_connection() -> None:
    shutdown = messages.ControlledShutdownRequest(broker_id=0x7FFF_0001)  # which would be too long a client id
    spoken = Talk().client(request(shutdown, 0, 1)).broker(response(messages.ControlledShutdownResponse(), 0, 1))
    spoken.client(request(shutdown, 1, 2))
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(7, 0, 1), (7, 1, 2)]
    assert [one.header.client_id for one in found] == [None, "billing"]
    assert not losses.counts


def test_a_frame_that_was_under_way_when_the_capture_began_is_passed_over() -> None:
    spoken = Talk().client(request(Metadata(topics=None), 12, 1), 9)
    spoken.pieces = spoken.pieces[1:]
    spoken.client(request(Metadata(topics=None), 12, 2)).broker(response(MetadataAnswer(), 12, 2))
    found, _ = seen(pcap(spoken.packets()))
    assert names(found) == [(3, 12, 2)]


@pytest.mark.parametrize("lost", [False, True], ids=["late", "lost"])
def test_the_first_segment_of_a_connection_may_come_late_or_never(lost: bool) -> None:
    topics = [Metadata.MetadataRequestTopic(name=f"topic-{at}") for at in range(200)]
    spoken = Talk().open().client(request(Metadata(topics=topics), 4, 1))
    for at in (2, 3):
        spoken.client(request(Metadata(topics=None), 4, at)).broker(response(MetadataAnswer(), 4, at))
    first = spoken.pieces.pop(2)
    if not lost:
        spoken.pieces.insert(3, first)
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(3, 4, 1), (3, 4, 2), (3, 4, 3)][lost:]
    assert bool(losses.counts) is lost
    assert NOT_KAFKA not in losses.counts


def test_a_lost_segment_costs_what_was_in_it_and_no_more() -> None:
    spoken = talk()
    del spoken.pieces[4]  # the second request
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(18, 3, 1), (3, 12, 3)]
    assert set(losses.counts) == {OUT_OF_STEP, UNMATCHED}


def test_bytes_lost_inside_a_frame_do_not_lose_the_next_one() -> None:
    topics = [Metadata.MetadataRequestTopic(name=f"topic-{at}") for at in range(100)]
    spoken = Talk().open().client(request(Metadata(topics=topics), 12, 1), 100)
    del spoken.pieces[7]
    spoken.client(request(Metadata(topics=None), 12, 2)).broker(response(MetadataAnswer(), 12, 1), 100)
    spoken.broker(response(MetadataAnswer(), 12, 2))
    found, losses = seen(pcap(spoken.packets()))
    assert sorted(names(found)) == [(3, 12, 1), (3, 12, 2)]
    assert not losses.counts


def test_what_a_capture_cut_off_each_packet_is_known_to_be_missing() -> None:
    topics = [Metadata.MetadataRequestTopic(name=f"topic-{at}") for at in range(100)]
    spoken = Talk().open().client(request(Metadata(topics=topics), 12, 1), 1400)
    spoken.client(request(Metadata(topics=None), 12, 2)).broker(response(MetadataAnswer(), 12, 2))
    out = io.BytesIO()
    out.write(pcap([])[:24])
    for frame in spoken.packets():
        kept = frame[:96]
        out.write(b"".join(number.to_bytes(4, "little") for number in (1, 0, len(kept), len(frame))) + kept)
    found, losses = seen(out.getvalue())
    assert names(found) == [(3, 12, 1), (3, 12, 2)]
    assert not losses.counts


def test_an_answer_captured_before_its_request_is_still_its_answer() -> None:
    spoken = talk()
    spoken.pieces[4], spoken.pieces[5] = spoken.pieces[5], spoken.pieces[4]
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == EXPECTED
    assert all(one.response_bytes is not None for one in found)
    assert not losses.counts


def test_a_request_without_an_answer_is_told_when_a_later_one_is_answered() -> None:
    silent = request(messages.ProduceRequest(acks=0), 9, 5)
    spoken = Talk().open().client(silent).client(request(Metadata(topics=None), 12, 6))
    spoken.broker(response(MetadataAnswer(), 12, 6))
    found, _ = seen(pcap(spoken.packets()))
    assert names(found) == [(0, 9, 5), (3, 12, 6)]
    assert [one.response_bytes is None for one in found] == [True, False]


def test_a_refused_request_for_versions_is_read_in_the_layout_of_version_0() -> None:
    refused = messages.ApiVersionsResponse(error_code=35, api_keys=[])
    listed = messages.ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=3)
    refused.api_keys.append(listed)
    body = (4).to_bytes(4, "big") + refused.encode(0)
    spoken = Talk().open().client(request(messages.ApiVersionsRequest(), 4, 4))
    spoken.broker(len(body).to_bytes(4, "big") + body)
    found, losses = seen(pcap(spoken.packets()), bodies=True)
    assert error_codes(found[0], losses) == (35,)
    assert offered(found[0], losses) == {18: (0, 3)}
    assert not losses.counts


def test_error_codes_are_gathered_from_any_depth_of_an_answer() -> None:
    topics = [
        MetadataAnswer.MetadataResponseTopic(
            error_code=3, partitions=[MetadataAnswer.MetadataResponsePartition(error_code=code) for code in (0, 5, 5)]
        )
    ]
    spoken = Talk().open().client(request(Metadata(topics=None), 12, 1))
    spoken.broker(response(MetadataAnswer(topics=topics), 12, 1))
    found, losses = seen(pcap(spoken.packets()), bodies=True)
    assert error_codes(found[0], losses) == (3, 5)


def test_a_body_that_cannot_be_read_is_counted_and_stops_nothing() -> None:
    bad = bytearray(response(MetadataAnswer(cluster_id="c"), 12, 2))
    bad[12:16] = b"\xff\xff\xff\x7f"
    spoken = Talk().open().client(asks(1)).broker(offers(1)).client(request(Metadata(topics=None), 12, 2))
    spoken.broker(bytes(bad)).client(request(Metadata(topics=None), 12, 3)).broker(response(MetadataAnswer(), 12, 3))
    found, losses = seen(pcap(spoken.packets()), bodies=True)
    assert [response_of(one, losses) is None for one in found] == [False, True, False]
    assert len(losses.counts) == 1


@pytest.mark.parametrize(
    ("mechanism", "token", "principal"),
    [
        ("PLAIN", b"\0alice\0secret", "User:alice"),
        ("SCRAM-SHA-512", b"n,,n=a=2Cb=3Dc,r=nonce", "User:a,b=c"),
        ("GSSAPI", b"\x60\x82", ""),
    ],
)
def test_the_principal_is_who_the_sasl_exchange_names(mechanism: str, token: bytes, principal: str) -> None:
    spoken = Talk().open().client(request(messages.SaslHandshakeRequest(mechanism=mechanism), 1, 1))
    spoken.broker(response(messages.SaslHandshakeResponse(), 1, 1))
    spoken.client(request(messages.SaslAuthenticateRequest(auth_bytes=token), 2, 2))
    spoken.broker(response(messages.SaslAuthenticateResponse(), 2, 2))
    spoken.client(request(Metadata(topics=None), 12, 3)).broker(response(MetadataAnswer(), 12, 3))
    found, _ = seen(pcap(spoken.packets()))
    assert found[-1].principal == principal
    assert "secret" not in repr(found[-1])


def test_tokens_outside_of_requests_after_an_old_handshake_are_read_too() -> None:
    token = b"\0alice\0secret"
    spoken = Talk().open().client(request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0, 1))
    spoken.broker(response(messages.SaslHandshakeResponse(), 0, 1))
    spoken.client(len(token).to_bytes(4, "big") + token).broker(bytes(4))
    spoken.client(request(Metadata(topics=None), 8, 2)).broker(response(MetadataAnswer(), 8, 2))
    found, losses = seen(pcap(spoken.packets()))
    assert [(one.header.api_key, one.principal) for one in found] == [(17, ""), (3, "User:alice")]
    assert not losses.counts


def test_an_empty_token_outside_of_requests_hides_nothing_of_what_follows_it() -> None:
    spoken = Talk().open().client(request(messages.SaslHandshakeRequest(mechanism="GSSAPI"), 0, 1))
    spoken.broker(response(messages.SaslHandshakeResponse(), 0, 1))
    spoken.client(b"\0\0\0\2\x60\x82").broker(b"\0\0\0\1\x60")
    spoken.client(bytes(4) + request(Metadata(topics=None), 8, 2)).broker(response(MetadataAnswer(), 8, 2))
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(17, 0, 1), (3, 8, 2)]
    assert not losses.counts


def test_the_name_alone_is_taken_from_a_token() -> None:
    assert user_of("PLAIN", b"\0alice\0pass\0word") == ""
    assert user_of("PLAIN", b"\0\xff\0word") == ""
    assert user_of("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof") == ""
    assert user_of("SCRAM-SHA-256", b"n,,n=alice,r=nonce,tokenauth=false") == "alice"
    assert user_of("SCRAM-SHA-256", b"n,,n=a-tokens-id,r=nonce,tokenauth=true") == ""  # whose owner is who comes in


@pytest.mark.parametrize("opened", [True, False], ids=["from its start", "from the middle"])
@pytest.mark.parametrize(
    ("first", "reason"), [(b"\x16\x03\x01\x02\x00" + bytes(60), TLS), (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", NOT_KAFKA)]
)
def test_what_is_not_kafkas_is_counted_once_a_connection_and_left_alone(
    first: bytes, reason: str, opened: bool
) -> None:
    spoken = Talk(((CLIENT[0], 5), BROKER))
    if opened:
        spoken.open()
    for _ in range(30):
        spoken.client(first).broker(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(50))
    found, losses = seen(pcap([*spoken.packets(), *talk().packets()]))
    assert names(found) == EXPECTED
    assert dict(losses.counts) == {reason: 1}


def test_a_name_stays_known_where_versions_are_asked_for_again_in_a_version_that_has_none() -> None:
    spoken = Talk().open().client(asks(1)).client(request(messages.ApiVersionsRequest(), 0, 2))
    found, _ = seen(pcap(spoken.client(request(Metadata(topics=None), 5, 3)).packets()))
    assert [one.software_name for one in found] == ["librdkafka"] * 3


def test_the_same_ends_may_connect_again() -> None:
    second = Talk().start_at(900_000, 7_000).open().client(asks(1, "second")).broker(offers(1))
    found, losses = seen(pcap([*talk().packets(), *second.packets()]))
    assert names(found) == [*EXPECTED, (18, 3, 1)]
    assert found[-1].software_name == "second"
    assert not losses.counts


def test_connections_that_are_written_down_may_all_begin_at_the_same_sequence() -> None:
    first, second = talk(), Talk().open().client(asks(1, "second")).broker(offers(1))
    first.pieces.append((False, first.pieces[-1][1] + len(first.pieces[-1][2]), b"", dpkt.tcp.TH_FIN | dpkt.tcp.TH_ACK))
    found, losses = seen(pcap([*first.packets(), *second.packets()]))
    assert names(found) == [*EXPECTED, (18, 3, 1)]
    assert found[-1].software_name == "second"
    assert not losses.counts


def behind_all(pieces: list[Piece]) -> tuple[int, int]:
    """The sequence after all that the client has sent, and after all that the broker has."""
    client, broker = (
        max(sequence + len(payload) for by_client, sequence, payload, _ in pieces if by_client is side)
        for side in (True, False)
    )
    return client, broker


@pytest.mark.parametrize("at", range(3, len(talk().pieces)))
def test_what_began_a_connection_begins_it_once_however_late_it_comes_again(at: int) -> None:
    spoken = talk()
    spoken.pieces[at:at] = spoken.pieces[:2]
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == EXPECTED
    assert all(one.responded >= 0 for one in found)
    assert not losses.counts


@pytest.mark.parametrize("by_client", [True, False], ids=["client", "broker"])
@pytest.mark.parametrize("off", [-(2**31), -1_000_000, -1, (1 << 30) + 1])
def test_a_reset_outside_of_the_window_ends_nothing(by_client: bool, off: int) -> None:
    spoken = talk()
    begun = spoken.pieces[:5]  # two requests, one of which is answered
    sequence = behind_all(begun)[not by_client] + off
    spoken.pieces.insert(5, (by_client, sequence % 2**32, b"", dpkt.tcp.TH_RST))
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == EXPECTED
    assert all(one.responded >= 0 for one in found)
    assert not losses.counts


@pytest.mark.parametrize("by_client", [True, False], ids=["client", "broker"])
@pytest.mark.parametrize("off", [0, 1, 100_000])
def test_a_reset_in_the_window_ends_a_connection(by_client: bool, off: int) -> None:
    spoken = talk()
    begun = spoken.pieces[:5]
    sequence = behind_all(begun)[not by_client] + off
    spoken.pieces.insert(5, (by_client, sequence, b"", dpkt.tcp.TH_RST))
    found, _ = seen(pcap(spoken.packets()))
    assert names(found)[:2] == EXPECTED[:2]
    assert [one.responded >= 0 for one in found[:2]] == [True, False]


def test_data_that_comes_with_the_first_packet_is_read() -> None:
    spoken = Talk().open().client(asks(1)).broker(offers(1))
    (by_client, sequence, _, flags), answered, (_, _, payload, _), *rest = spoken.pieces
    spoken.pieces = [(by_client, sequence, payload, flags), answered, *rest]
    found, losses = seen(pcap(spoken.packets()))
    assert names(found) == [(18, 3, 1)]
    assert not losses.counts


def test_connections_that_are_followed_at_a_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagwire.capture.connections.MAX_CONNECTIONS", 3)
    begun = [Talk(((CLIENT[0], port), BROKER)).open().client(asks(1)) for port in range(1, 6)]
    ended = [Talk(((CLIENT[0], port), BROKER)).broker(offers(1)) for port in range(5, 0, -1)]
    found, _ = seen(pcap([packet for spoken in (*begun, *ended) for packet in spoken.packets()]))
    assert [one.client.port for one in found if one.responded >= 0] == [5, 4, 3]


def test_every_kind_of_link_is_read() -> None:
    spoken = talk()
    plain = spoken.packets()
    bare = [bytes(ip(spoken.ends, piece)) for piece in spoken.pieces]
    tagged = [frame[:12] + b"\x81\x00\x00\x05" + frame[12:] for frame in plain]
    doubled = [frame[:12] + b"\x88\xa8\x00\x01\x81\x00\x00\x05" + frame[12:] for frame in plain]
    links = {
        "ethernet": (1, plain),
        "VLAN": (1, tagged),
        "two VLAN tags": (1, doubled),
        "raw": (101, bare),
        "any interface": (113, [bytes(14) + b"\x08\x00" + packet for packet in bare]),
        "any interface, version 2": (276, [b"\x08\x00" + bytes(18) + packet for packet in bare]),
        "loopback": (0, [b"\x02\x00\x00\x00" + packet for packet in bare]),
        "loopback of OpenBSD": (108, [b"\x00\x00\x00\x02" + packet for packet in bare]),
    }
    read = {name: names(seen(pcap(frames, link))[0]) for name, (link, frames) in links.items()}
    assert read == dict.fromkeys(links, EXPECTED)


def test_packets_that_cannot_be_read_are_counted_by_reason() -> None:
    good = talk().packets()
    fragment = ethernet((CLIENT, BROKER), (True, 1, b"x", 16))
    fragment.data.mf = 1
    others = bytes(dpkt.ethernet.Ethernet(type=0x0806, data=bytes(28)))
    found, losses = seen(pcap([bytes(fragment), good[0][:40], others, *good]))
    assert names(found) == EXPECTED
    assert dict(losses.counts) == {FRAGMENT: 1, CUT: 1}
    assert dict(seen(pcap(good, 147))[1].counts) == {LINK: len(good)}


def test_a_fragment_that_is_the_whole_packet_is_read_as_the_packet() -> None:
    """RFC 6946."""
    spoken = Talk((("2001:db8::1", 50000), ("2001:db8::2", 9092))).open().client(asks()).broker(offers())
    whole = [bytes(ip(spoken.ends, piece)) for piece in spoken.pieces]
    header = bytes([6, 0, 0, 0, 0, 0, 0, 7])
    atomic = [
        each[:4] + (len(each) - 32).to_bytes(2, "big") + b"\x2c" + each[7:40] + header + each[40:] for each in whole
    ]
    found, losses = seen(pcap(atomic, 101))
    assert (names(found), dict(losses.counts)) == (names(seen(pcap(whole, 101))[0]), {})
    assert found


def test_an_ip_header_that_is_shorter_than_any_has_no_segment_behind_it() -> None:
    """Its protocol, checksum and addresses passed for ports and the rest of TCP's."""
    packet = talk().packets()[2]
    broken = packet[:14] + b"\x42" + packet[15:26] + bytes([10, 0, 0x50, 0x12]) + packet[30:]
    found, losses = seen(pcap([broken] * 3))
    assert names(found) == []
    assert dict(losses.counts) == {CUT: 3}


@given(st.data())
def test_damaged_captures_never_raise_and_lose_only_what_is_damaged(data: st.DataObject) -> None:
    """Any byte changed, any tail cut: an answer or a count, and never more than was there."""
    whole = bytearray(pcap(talk().packets()))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(24, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(24, len(whole)))
    found, losses = seen(bytes(whole[:cut]), bodies=True)
    for one in found:
        error_codes(one, losses)
    assert len(found) <= len(EXPECTED) + 6

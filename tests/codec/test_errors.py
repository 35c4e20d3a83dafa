"""Errors say where: the message, its version, the field's path, and the byte; and nothing is left half done."""

from __future__ import annotations

import array
import pickle
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.errors import DecodeError, EncodeError, TagwireError, UnsupportedVersionError

Fetch = messages.FetchResponse
Metadata = messages.MetadataResponse


def fetch_bytes() -> bytes:
    """FetchResponse v12: one topic with three partitions of 1, 2 and 3 bytes of records."""
    partitions = [Fetch.PartitionData(partition_index=i, records=b"r" * (i + 1)) for i in range(3)]
    return Fetch(responses=[Fetch.FetchableTopicResponse(topic="t", partitions=partitions)]).encode(12)


def test_a_decode_error_tells_the_whole_story_in_one_line() -> None:
    data = fetch_bytes()
    at = data.rindex(b"\x04rrr")
    broken = data[:at] + b"\x84\xc0\x02" + data[at + 1 :]
    with pytest.raises(DecodeError) as caught:
        Fetch.decode(broken, 12)
    left = len(data) - at - 1
    assert str(caught.value) == (
        f"FetchResponse v12, responses[0].partitions[2].records at byte {at + 3}: "
        f"compact length 40963 runs past the end ({left} bytes left)"
    )
    assert (caught.value.path, caught.value.offset) == ("FetchResponse v12, responses[0].partitions[2].records", at + 3)
    assert isinstance(caught.value, TagwireError)


def test_a_plain_length_that_runs_past_the_end_says_so() -> None:
    with pytest.raises(DecodeError) as caught:
        messages.SaslHandshakeRequest.decode(b"\x00\x05PLAI", 0)
    assert str(caught.value) == (
        "SaslHandshakeRequest v0, mechanism at byte 2: length 5 runs past the end (4 bytes left)"
    )
    with pytest.raises(DecodeError, match=r"ApiVersionsResponse v0, api_keys\[1\]\.min_version at byte 14: needs 2 by"):
        messages.ApiVersionsResponse.decode(bytes.fromhex("0000 00000002 0012 0000 0004 0003"), 0)


def test_a_path_goes_through_tags_and_arrays_of_primitives() -> None:
    response = messages.ApiVersionsResponse
    feature = response.SupportedFeatureKey(name="metadata.version", min_version=1, max_version=2)
    good = response(supported_features=[feature]).encode(3)
    broken = good.replace(b"metadata", b"m\xfftadata")
    at = broken.index(b"\xff")
    with pytest.raises(DecodeError) as caught:
        response.decode(broken, 3)
    assert str(caught.value) == f"ApiVersionsResponse v3, supported_features[0].name at byte {at}: not UTF-8"
    with pytest.raises(DecodeError, match=r"SaslHandshakeResponse v0, mechanisms\[1\] at byte 9: null where"):
        messages.SaslHandshakeResponse.decode(bytes.fromhex("0000 00000002 000161 ffff"), 0)
    with pytest.raises(DecodeError, match="MetadataRequest v0, topics at byte 3: needs 4 bytes, 2 are left"):
        messages.MetadataRequest.decode_prefix(b"abc\0\0", 0, start=3)


def test_an_error_in_a_struct_itself_has_the_path_of_the_struct() -> None:
    data = bytes.fromhex("02 00000001 02 61 00000001 00 ff")  # a broker whose tag section is broken
    with pytest.raises(DecodeError) as caught:
        Metadata.decode(b"\0\0\0\0" + data, 9)
    assert str(caught.value) == "MetadataResponse v9, brokers[0] at byte 17: ends inside a varint"
    with pytest.raises(DecodeError) as caught:
        messages.HeartbeatResponse.decode(bytes.fromhex("00000000 0000 00 00"), 4)
    assert str(caught.value) == "HeartbeatResponse v4 at byte 7: 1 bytes follow the message"


def test_an_error_after_an_array_no_longer_names_an_element() -> None:
    response = Metadata(brokers=[Metadata.MetadataResponseBroker()], cluster_id="c").encode(2)
    with pytest.raises(DecodeError, match=f"MetadataResponse v2, topics at byte {len(response) - 4}: needs 4 bytes"):
        Metadata.decode(response[:-1], 2)


def test_offsets_count_from_the_start_of_the_data() -> None:
    body = messages.HeartbeatRequest(group_id="g", member_id="m").encode(4)
    data = b"header" + body
    message, end = messages.HeartbeatRequest.decode_prefix(data + b"rest", 4, start=6)
    assert (message.group_id, end) == ("g", len(data))
    with pytest.raises(DecodeError, match="HeartbeatRequest v4, group_instance_id at byte 14: ends inside a varint"):
        messages.HeartbeatRequest.decode_prefix(data[:-2], 4, start=6)


@pytest.mark.parametrize("start", [-1, -1000, 4, 2**40])
def test_a_start_outside_the_data_is_refused(start: int) -> None:
    with pytest.raises(DecodeError, match=f"HeartbeatRequest v4: starts at byte {start} of 3"):
        messages.HeartbeatRequest.decode_prefix(b"abc", 4, start=start)


def test_a_start_at_the_end_reads_nothing_more() -> None:
    with pytest.raises(DecodeError, match="HeartbeatRequest v4, group_id at byte 3: ends inside a varint"):
        messages.HeartbeatRequest.decode_prefix(b"abc", 4, start=3)


@pytest.mark.parametrize(
    ("message", "version", "said"),
    [
        (
            Metadata(topics=[Metadata.MetadataResponseTopic(name="t"), Metadata.MetadataResponseTopic(name=None)]),
            9,
            "MetadataResponse v9, topics[1].name: cannot be null",
        ),
        (
            Fetch(responses=[Fetch.FetchableTopicResponse(partitions=[Fetch.PartitionData(records="x")])]),
            12,
            "FetchResponse v12, responses[0].partitions[0].records: needs bytes, not str",
        ),
        (
            Metadata(
                topics=[
                    Metadata.MetadataResponseTopic(
                        name="t", partitions=[Metadata.MetadataResponsePartition(replica_nodes=[1, 2, "3"])]
                    )
                ]
            ),
            9,
            "MetadataResponse v9, topics[0].partitions[0].replica_nodes[2]: needs an int, not str",
        ),
        (
            messages.ApiVersionsResponse(
                supported_features=[messages.ApiVersionsResponse.SupportedFeatureKey(name="a", min_version=70000)]
            ),
            3,
            "ApiVersionsResponse v3, supported_features[0].min_version: 70000 is out of range: -32768 to 32767",
        ),
        (
            messages.ApiVersionsResponse(api_keys=[messages.ApiVersionsResponse.ApiVersion(unknown_tags={-1: b""})]),
            3,
            "ApiVersionsResponse v3, api_keys[0]: -1 is no tag: unknown_tags maps ints from 0 to 4294967295 to bytes",
        ),
        (Metadata(brokers=None), 1, "MetadataResponse v1, brokers: cannot be null"),
    ],
)
def test_an_encode_error_names_the_path_with_its_index(message: Any, version: int, said: str) -> None:
    with pytest.raises(EncodeError) as caught:
        message.encode(version)
    assert str(caught.value) == said


def test_a_field_that_cannot_be_lost_is_named_with_its_index() -> None:
    topics = [Metadata.MetadataResponseTopic(name="t"), Metadata.MetadataResponseTopic(name="u")]
    message = Metadata(topics=topics)
    topics[1].partitions.append(Metadata.MetadataResponsePartition(offline_replicas=[1]))
    assert message.encode(4)  # ignorable
    request = messages.CreateTopicsRequest(validate_only=True)
    with pytest.raises(UnsupportedVersionError) as caught:
        request.encode(0)
    assert str(caught.value) == (
        "CreateTopicsRequest v0, validate_only is not at its default, and exists only in versions 1+"
    )


def test_an_error_leaves_the_message_as_it_was_and_usable() -> None:
    message = Metadata(topics=[Metadata.MetadataResponseTopic(name=None)])
    with pytest.raises(EncodeError):
        message.encode(9)
    message.topics[0].name = "t"
    assert Metadata.decode(message.encode(9), 9) == message


def test_a_list_that_changes_while_it_is_written_is_refused() -> None:
    """UUID is the one value that runs Python code while it is written."""
    request = messages.MetadataRequest

    class Growing(UUID):
        @property
        def bytes(self) -> bytes:
            topics.append(request.MetadataRequestTopic(name="new"))
            return b"\1" * 16

    topics = [request.MetadataRequestTopic(topic_id=Growing(int=1), name=None)]
    message = request(topics=topics)
    for _ in range(2):
        topics[1:] = []
        with pytest.raises(EncodeError, match=r"MetadataRequest v12, topics\[1\]: changed its length while it was"):
            message.encode(12)


def test_a_list_that_is_emptied_while_it_is_written_is_refused() -> None:
    request = messages.MetadataRequest

    class Clearing(UUID):
        @property
        def bytes(self) -> bytes:
            topics.clear()
            return b"\1" * 16

    topics = [request.MetadataRequestTopic(topic_id=Clearing(int=1), name=None) for _ in range(100)]
    with pytest.raises(EncodeError, match=r"topics\[0\]: changed its length while it was written"):
        request(topics=topics).encode(12)


def test_an_exception_of_a_value_itself_passes_through() -> None:
    class Broken(UUID):
        @property
        def bytes(self) -> bytes:
            raise ZeroDivisionError("mine")

    topic = messages.MetadataRequest.MetadataRequestTopic(topic_id=Broken(int=1), name=None)
    with pytest.raises(ZeroDivisionError, match="mine"):
        messages.MetadataRequest(topics=[topic]).encode(12)


def test_a_decode_error_survives_a_pickle() -> None:
    with pytest.raises(DecodeError) as caught:
        Metadata.decode(b"", 9)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.offset) == (str(caught.value), caught.value.path, caught.value.offset)


# -- what data may be


def views(data: bytes) -> list[Any]:
    spread = bytearray(2 * len(data))
    spread[::2] = data
    shorts = array.array("h")
    shorts.frombytes(data)
    return [
        data,
        bytearray(data),
        memoryview(data),
        memoryview(bytearray(data)),
        memoryview(b"__" + data + b"__")[2:-2],
        memoryview(spread)[::2],
        memoryview(data[::-1])[::-1],
        memoryview(data).cast("b"),
        memoryview(data).cast("c"),
        shorts,
        memoryview(shorts),
        memoryview(data).cast("B", (2, len(data) // 2)),
    ]


def test_data_may_be_any_kind_of_buffer() -> None:
    data = fetch_bytes()
    data += b"" if len(data) % 2 == 0 else b"!"
    expected, end = Fetch.decode_prefix(data, 12)
    for view in views(data):
        message, at = Fetch.decode_prefix(view, 12)
        assert (message, at) == (expected, end), view
        records = message.responses[0].partitions[2].records
        assert bytes(records) == b"rrr"


@pytest.mark.parametrize("empty", [b"", bytearray(), memoryview(b""), array.array("i"), memoryview(b"abc")[3:]])
def test_data_may_be_empty(empty: Any) -> None:
    assert messages.ApiVersionsRequest.decode(empty, 0) == messages.ApiVersionsRequest()
    with pytest.raises(DecodeError, match="MetadataRequest v0, topics at byte 0: needs 4 bytes, 0 are left"):
        messages.MetadataRequest.decode(empty, 0)


@pytest.mark.parametrize("wrong", ["text", None, 7, [1, 2]])
def test_data_that_is_no_buffer_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a bytes-like object is required"):
        messages.MetadataRequest.decode(wrong, 0)


def test_records_are_views_into_the_data() -> None:
    data = bytearray(fetch_bytes())
    records = Fetch.decode(data, 12).responses[0].partitions[2].records
    assert isinstance(records, memoryview)
    data[data.rindex(b"rrr")] = ord("R")
    assert bytes(records) == b"Rrr"


def test_data_is_let_go_of_when_the_message_is() -> None:
    data = bytearray(fetch_bytes())
    message = Fetch.decode(data, 12)
    with pytest.raises(BufferError):
        data.append(0)
    del message
    data.append(0)
    plain = bytearray(messages.HeartbeatRequest(group_id="g").encode(4))
    heartbeat = messages.HeartbeatRequest.decode(plain, 4)
    plain.append(0)
    with pytest.raises(DecodeError):
        messages.HeartbeatRequest.decode(plain, 4)
    plain.append(0)
    assert heartbeat.group_id == "g"

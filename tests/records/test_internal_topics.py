"""Kafka's own topics: what their records say, byte for byte, and what is said of records that nobody knows."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.errors import ConfigError, DecodeError, UnsupportedVersionError
from tagwire.records.internal_topics import (
    CLUSTER_METADATA,
    HIDDEN,
    INTERNAL_TOPICS,
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    decode_key,
    decode_record,
    decode_value,
)

COMMIT_KEY = bytes.fromhex("0001 000167 000174 00000003")


def framed(record, version):
    """A metadata record in its frame: frame version, id and version as one-byte varints."""
    return bytes((1, record.api_key, version)) + record.encode(version)


@pytest.mark.parametrize(
    ("value", "version", "leader_epoch"),
    [
        ("0000 0000000000000064 00016d 00000000000003e8", 0, -1),
        ("0001 0000000000000064 00016d 00000000000003e8 ffffffffffffffff", 1, -1),
        ("0002 0000000000000064 00016d 00000000000003e8", 2, -1),
        ("0003 0000000000000064 00000005 00016d 00000000000003e8", 3, 5),
        ("0004 0000000000000064 00000005 026d 00000000000003e8 00", 4, 5),
    ],
)
def test_an_offset_commit_is_read_at_every_version(value, version, leader_epoch):
    key = decode_key(OFFSETS, COMMIT_KEY)
    assert key == messages.OffsetCommitKey(group="g", topic="t", partition=3)
    found = decode_value(OFFSETS, COMMIT_KEY, bytes.fromhex(value))
    assert found.version == version
    assert (found.message.offset, found.message.leader_epoch, found.message.metadata) == (100, leader_epoch, "m")


@pytest.mark.parametrize(
    ("topic", "key", "said"),
    [
        (OFFSETS, "0000 000167 000174 00000003", "LegacyOffsetCommitKey(group='g', topic='t', partition=3)"),
        (OFFSETS, "0002 000167", "GroupMetadataKey(group='g')"),
        (TRANSACTIONS, "0000 00027478", "TransactionLogKey(transactional_id='tx')"),
    ],
)
def test_the_same_record_type_means_what_its_topic_says(topic, key, said):
    assert repr(decode_key(topic, bytes.fromhex(key))) == said


def test_share_group_state_has_keys_of_its_own():
    key = decode_key(SHARE_STATE, bytes.fromhex("0000 000167 1f728a3b835344f6825ad1269b7bd6ec 00000001"))
    assert (type(key).__name__, key.group_id, key.partition) == ("ShareSnapshotKey", "g", 1)


def test_a_tombstone_has_a_type_and_a_key_and_no_value():
    found = decode_record(OFFSETS, COMMIT_KEY, None)
    assert found.to_json() == {
        "type": "OffsetCommit",
        "key": {"group": "g", "topic": "t", "partition": 3},
        "value": None,
    }


def test_what_follows_a_coordinators_value_is_ignored():
    value = bytes.fromhex("0003 0000000000000064 00000005 00016d 00000000000003e8 77777777")
    assert decode_value(OFFSETS, COMMIT_KEY, value).message.offset == 100


@pytest.mark.parametrize(
    "record",
    [
        messages.TopicRecord(name="t"),
        messages.PartitionRecord(partition_id=3, replicas=[1, 2]),
        messages.NoOpRecord(),
        messages.UnregisterControllerRecord(),
    ],
)
def test_cluster_metadata_is_read_at_every_version(record):
    for version in record.valid_versions:
        found = decode_value(CLUSTER_METADATA, None, framed(record, version))
        assert found == (record, version)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", DecodeError),
        ("01", DecodeError),
        ("0114", DecodeError),
        ("01ff", DecodeError),
        ("01ffffff0100", DecodeError),
        ("0180800200", DecodeError),
        ("001400", UnsupportedVersionError),
        ("021400", UnsupportedVersionError),
        ("010600", UnsupportedVersionError),
        ("011401", UnsupportedVersionError),
        ("01140000ff", DecodeError),
    ],
)
def test_a_metadata_frame_that_is_broken_or_unknown_is_a_typed_error(value, error):
    data = bytes.fromhex(value)
    with pytest.raises(error):
        decode_value(CLUSTER_METADATA, None, data)
    told = decode_record(CLUSTER_METADATA, None, data)
    assert (told.type, told.value) == (None, None)
    assert told.error


def test_a_frame_with_its_numbers_in_more_bytes_than_needed_is_read():
    assert decode_value(CLUSTER_METADATA, None, bytes.fromhex("8100 9400 8000 00")).message == messages.NoOpRecord()


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS, SHARE_STATE])
@pytest.mark.parametrize(
    ("key", "error"),
    [(None, DecodeError), (b"", DecodeError), (b"\0", DecodeError), (b"\x01\x00abc", UnsupportedVersionError)],
)
def test_a_key_that_is_broken_or_unknown_is_a_typed_error_and_told(topic, key, error):
    with pytest.raises(error):
        decode_key(topic, key)
    with pytest.raises(error):
        decode_value(topic, key, b"\0\0")
    assert decode_record(topic, key, b"\0\0").error


@pytest.mark.parametrize("size", range(len(COMMIT_KEY)))
def test_a_key_cut_anywhere_is_a_typed_error(size):
    with pytest.raises(DecodeError):
        decode_key(OFFSETS, COMMIT_KEY[:size])


def test_an_unknown_version_leaves_the_key_readable():
    found = decode_record(OFFSETS, COMMIT_KEY, b"\0\x09")
    assert found.key.message.group == "g"
    assert found.type == "OffsetCommit"
    assert "version 9" in found.error


def test_a_topic_that_is_not_kafkas_own_is_an_error_that_names_those_that_are():
    for call in (decode_key, lambda topic, key: decode_record(topic, key, None)):
        with pytest.raises(ConfigError, match=INTERNAL_TOPICS[0]):
            call("flights", b"")


def test_credentials_are_hidden():
    record = messages.UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER", iterations=4096
    )
    found = decode_record(CLUSTER_METADATA, None, framed(record, 0))
    assert found.to_json()["value"] == {
        "name": "alice",
        "mechanism": 1,
        "salt": HIDDEN,
        "storedKey": HIDDEN,
        "serverKey": HIDDEN,
        "iterations": 4096,
    }
    assert not any(secret in repr(found) for secret in ("SALT", "STORED", "SERVER"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ssl.keystore.password", HIDDEN),
        ("listener.name.x.plain.sasl.jaas.config", HIDDEN),
        ("ssl.keystore.key", HIDDEN),
        ("retention.ms", "value"),
    ],
)
def test_configs_that_hold_credentials_are_hidden(name, shown):
    record = messages.ConfigRecord(resource_type=4, resource_name="1", name=name, value="value")
    assert decode_record(CLUSTER_METADATA, None, framed(record, 0)).to_json()["value"]["value"] == shown


def test_what_a_consumer_put_into_its_groups_metadata_is_decoded():
    subscription = messages.ConsumerProtocolSubscription(topics=["t"])
    assignment = messages.ConsumerProtocolAssignment()
    member = messages.GroupMetadataValue.MemberMetadata(
        member_id="m", subscription=b"\0\1" + subscription.encode(1), assignment=b"\0\0" + assignment.encode(0)
    )
    value = messages.GroupMetadataValue(protocol_type="consumer", members=[member])
    found = decode_record(OFFSETS, b"\0\2\0\1g", b"\0\3" + value.encode(3)).to_json()
    (shown,) = found["value"]["members"]
    assert shown["subscription"]["topics"] == ["t"]
    assert shown["assignment"] == {"version": 0, "assignedPartitions": [], "userData": None}

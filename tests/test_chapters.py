"""The bytes of the chapters on transactions and groups are what our own encoder writes, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import Error

DOCS = Path(__file__).parents[1] / "docs"
SHOWN = re.compile(r"^    (?P<name>[A-Z]\w+) v(?P<version>\d+)\n(?P<hex>(?:        [0-9a-f ]+\n)+)", re.MULTILINE)

TOPIC = "orders"
CONSUMER = b"\x00\x03" + messages.ConsumerProtocolSubscription(topics=[TOPIC], rack_id=None).encode(3)
ASSIGNED = messages.ConsumerProtocolAssignment.TopicPartition(topic=TOPIC, partitions=[0])
ASSIGNMENT = b"\x00\x03" + messages.ConsumerProtocolAssignment(assigned_partitions=[ASSIGNED]).encode(3)


def added() -> Any:
    kind = messages.AddPartitionsToTxnRequest
    topic = kind.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    return kind(
        v3_and_below_transactional_id="billing",
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[topic],
    )


def committed() -> Any:
    kind = messages.TxnOffsetCommitRequest
    partition = kind.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=42, committed_leader_epoch=-1, committed_metadata=""
    )
    topic = kind.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return kind(transactional_id="billing", group_id="bills", producer_id=7, producer_epoch=0, topics=[topic])


def markers() -> Any:
    kind = messages.WriteTxnMarkersRequest
    topic = kind.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
    marker = kind.WritableTxnMarker(
        producer_id=7, producer_epoch=0, transaction_result=True, topics=[topic], coordinator_epoch=3
    )
    return kind(markers=[marker])


def joined() -> Any:
    kind = messages.JoinGroupRequest
    protocol = kind.JoinGroupRequestProtocol(name="range", metadata=CONSUMER)
    return kind(
        group_id="bills",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )


def heartbeat() -> Any:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id="bills",
        member_id="m-1",
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )


EXAMPLES: dict[str, dict[tuple[str, int], Any]] = {
    "transactions-on-the-wire.md": {
        ("InitProducerIdRequest", 4): messages.InitProducerIdRequest(
            transactional_id="billing", transaction_timeout_ms=60_000
        ),
        ("InitProducerIdResponse", 4): messages.InitProducerIdResponse(producer_id=7, producer_epoch=0),
        ("AddPartitionsToTxnRequest", 3): added(),
        ("AddOffsetsToTxnRequest", 3): messages.AddOffsetsToTxnRequest(
            transactional_id="billing", producer_id=7, producer_epoch=0, group_id="bills"
        ),
        ("TxnOffsetCommitRequest", 3): committed(),
        ("EndTxnRequest", 3): messages.EndTxnRequest(
            transactional_id="billing", producer_id=7, producer_epoch=0, committed=True
        ),
        ("EndTxnResponse", 5): messages.EndTxnResponse(producer_id=7, producer_epoch=1),
        ("WriteTxnMarkersRequest", 1): markers(),
    },
    "groups-on-the-wire.md": {
        ("FindCoordinatorRequest", 4): messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["bills"]),
        ("JoinGroupRequest", 9): joined(),
        ("JoinGroupResponse", 9): messages.JoinGroupResponse(
            error_code=Error.MEMBER_ID_REQUIRED, generation_id=-1, leader="", member_id="m-1"
        ),
        ("SyncGroupRequest", 5): messages.SyncGroupRequest(
            group_id="bills",
            generation_id=1,
            member_id="m-1",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id="m-1", assignment=ASSIGNMENT)],
        ),
        ("HeartbeatRequest", 4): messages.HeartbeatRequest(group_id="bills", generation_id=1, member_id="m-1"),
        ("HeartbeatResponse", 4): messages.HeartbeatResponse(error_code=Error.REBALANCE_IN_PROGRESS),
        ("ConsumerGroupHeartbeatRequest", 1): heartbeat(),
    },
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_every_message_of_a_chapter_is_what_our_encoder_writes(page: str) -> None:
    shown = {
        (found["name"], int(found["version"])): re.sub(r"\s", "", found["hex"])
        for found in SHOWN.finditer((DOCS / page).read_text(encoding="utf-8"))
    }
    assert shown == {(name, version): one.encode(version).hex() for (name, version), one in EXAMPLES[page].items()}
    for (name, version), text in shown.items():
        assert getattr(messages, name).decode(bytes.fromhex(text), version) == EXAMPLES[page][name, version]

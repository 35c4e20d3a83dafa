"""A misspelt field of a message, another API's response and a wrong option are refused by mypy before they run."""

from __future__ import annotations

from pathlib import Path

from ..planted_mistakes import assert_mypy_refuses

CODE = """\
from tagwire import messages
from tagwire.client import Delivery, Producer, Reader
from tagwire.client.aio import AsyncAdmin, AsyncProducer
from tagwire.client.fetch_sessions import FetchSession
from tagwire.client.coordinator_client import CoordinatorClient


async def end(coordinator: CoordinatorClient) -> int:
    response = await coordinator.send(
        lambda _: messages.EndTxnRequest(committed=True),
        lambda response: [response.error_code],
        1.0,
        "end",
    )
    return response.producer_epoch


def send(delivery: Delivery) -> int:
    with Producer("127.0.0.1:1", acks="all", linger=0.1) as producer:
        producer.send("t", b"v")
    return delivery.result().offset if delivery.done() else 0


def read(session: FetchSession, response: messages.FetchResponse) -> int:
    with Reader("127.0.0.1:1", "t", isolation="read_committed", batch_rows=9) as reader:
        reader.seek(("t", 0), "earliest")
    return sum(data.last_stable_offset for _, data in session.take(response))


async def administer(admin: AsyncAdmin, producer: AsyncProducer) -> int:
    await admin.create_topics("t", validate_only=True)
    groups = await admin.list_groups(states="Empty")
    return len(groups) + (await (await producer.send("t", b"v"))).offset
"""

# what is right, what stands there instead, what mypy says of it
MISTAKES = [
    ("committed=", "commit=", 'keyword argument "commit" for "EndTxnRequest"'),
    ("committed=True", "committed=2.5", 'incompatible type "float"; expected "bool"'),
    ("[response.error_code]", "[response.error]", '"EndTxnResponse" has no attribute "error"'),
    ("EndTxnRequest(committed=True)", "HeartbeatRequest()", '"HeartbeatResponse" has no attribute "producer_epoch"'),
    ("linger=", "lingr=", 'keyword argument "lingr" for "Producer"'),
    ('acks="all"', "acks=1.5", '"acks" to "Producer" has incompatible type "float"'),
    ("isolation=", "isolaton=", 'keyword argument "isolaton" for "Reader"'),
    ("batch_rows=9", 'batch_rows="9"', '"batch_rows" to "Reader" has incompatible type "str"'),
    ('"earliest"', '"beginning"', 'has incompatible type "Literal['),
    ("last_stable_offset", "last_offset", '"PartitionData" has no attribute "last_offset"'),
    ("validate_only=", "validate=", 'Unexpected keyword argument "validate"'),
    ('states="Empty"', "states=3", 'has incompatible type "int"'),
    ("len(groups)", "len(groups.names)", 'has no attribute "names"'),
    ('(await (await producer.send("t", b"v")))', '(await producer.send("t", b"v"))', 'has no attribute "offset"'),
    ("delivery.done()", "delivery.done", '"done" could always be true in boolean context'),
]


def test_mypy_sees_a_wrong_field_a_wrong_message_and_a_wrong_option(tmp_path: Path) -> None:
    assert_mypy_refuses(tmp_path, CODE, MISTAKES)

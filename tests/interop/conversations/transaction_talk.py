"""Words about transactions: who begins, takes part in, ends and looks at them, and who comes too late."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from .batches import Batch
from .program import Named, Now, ProducerEpoch, ProducerId, Step, Subject, Talk, TopicId, Topics

IDS: Final = ("x", "y")
GROUPS: Final = ("g", "h")


def topics(random: Random) -> Topics:
    return {"t": (2, {}), "u": (1, {})}


def _id(talk: Talk) -> str:
    return talk.mostly(talk.one_of(*IDS), "z", chance=0.97)  # type: ignore[no-any-return]


def _who(talk: Talk) -> tuple[Any, Any, Any]:
    """A transactional id, and mostly its producer's id and epoch."""
    name = _id(talk)
    whose = talk.mostly(name, *IDS, chance=0.95)
    return Named(name), ProducerId(whose), ProducerEpoch(whose, talk.mostly(0, -1, 1, -5, chance=0.9))


def init(talk: Talk) -> Step:
    version = talk.version("InitProducerId")
    name = talk.mostly(talk.one_of(*IDS), None, "", chance=0.95)
    body: dict[str, Any] = {
        "transactionalId": Named(name) if name else name,
        "transactionTimeoutMs": talk.mostly(600_000, 0, -1, 2**31 - 1, 900_000, 900_001, chance=0.9),
    }
    if version >= 3 and name and ("open", name) not in talk.notes and talk.random.random() < 0.4:
        epoch = ProducerEpoch(name, talk.mostly(0, -1, 1, chance=0.7))
        body |= {"producerId": talk.mostly(ProducerId(name), ProducerId("nobody"), -1, chance=0.9)}
        body |= {"producerEpoch": talk.mostly(epoch, -1, chance=0.95)}
    talk.notes.pop(("open", name), None)
    forget(talk, name)
    return Step("InitProducerId", version, body, ("producer", name or "plain"))


def forget(talk: Talk, name: str | None) -> None:
    """Its producer counts from 0 on."""
    for key in [key for key in talk.notes if key[0] == name]:
        del talk.notes[key]


def add_partitions(talk: Talk) -> Step:
    version = talk.version("AddPartitionsToTxn", 0, 3)
    who, producer, epoch = _who(talk)
    asked: dict[str, list[int]] = {}
    talk.notes["open", who.name] = True
    for _ in range(talk.one_of(1, 1, 2)):
        topic, partition = talk.partition()
        asked.setdefault(topic, []).append(partition)
    body = {
        "v3AndBelowTransactionalId": who,
        "v3AndBelowProducerId": producer,
        "v3AndBelowProducerEpoch": epoch,
        "v3AndBelowTopics": [{"name": Named(topic), "partitions": parts} for topic, parts in asked.items()],
    }
    return Step("AddPartitionsToTxn", version, body)


def add_offsets(talk: Talk) -> Step:
    who, producer, epoch = _who(talk)
    group = Named(talk.one_of(*GROUPS))
    talk.notes["open", who.name] = True
    body = {"transactionalId": who, "producerId": producer, "producerEpoch": epoch, "groupId": group}
    return Step("AddOffsetsToTxn", talk.version("AddOffsetsToTxn"), body)


def commit_offsets(talk: Talk) -> Step:
    version = talk.version("TxnOffsetCommit", 0, 4)
    who, producer, epoch = _who(talk)
    topic, partition = talk.partition()
    one: dict[str, Any] = {
        "partitionIndex": partition,
        "committedOffset": talk.random.randint(0, 9),
        "committedMetadata": talk.mostly(None, "", "m", "m" * 5000),
    }
    if version >= 2:
        one["committedLeaderEpoch"] = talk.mostly(-1, 0, 3)
    body: dict[str, Any] = {
        "transactionalId": who,
        "groupId": talk.mostly(Named(talk.one_of(*GROUPS)), "", chance=0.98),
        "producerId": producer,
        "producerEpoch": epoch,
        "topics": [{"name": Named(topic), "partitions": [one]}],
    }
    if version >= 3:
        body |= {"generationIdOrMemberEpoch": talk.mostly(-1, 0, 1), "memberId": talk.mostly("", "somebody")}
        body["groupInstanceId"] = talk.mostly(None, "i", chance=0.95)
    return Step("TxnOffsetCommit", version, body)


def produce(talk: Talk) -> Step:
    version = talk.version("Produce", 3, 11)
    name, (topic, partition) = talk.one_of(*IDS), talk.partition()
    due = talk.notes.get((name, topic, partition), 0)
    talk.notes[name, topic, partition] = due + 1
    batch = Batch(
        ((b"k", b"v", Now()),),
        producer=(name, talk.mostly(0, -1, 1, chance=0.9)),
        sequence=max(talk.mostly(due, due - 1, due + 1, 0, chance=0.85), 0),
        transactional=talk.mostly(True, False, chance=0.97),
    )
    body = {
        "transactionalId": Named(name),
        "acks": -1,
        "timeoutMs": 5000,
        "topicData": [{"name": Named(topic), "partitionData": [{"index": partition, "records": batch}]}],
    }
    return Step("Produce", version, body)


def end(talk: Talk) -> Step:
    who, producer, epoch = _who(talk)
    if epoch.more == 0 and producer.producer == who.name:
        talk.notes.pop(("open", who.name), None)
    body = {"transactionalId": who, "producerId": producer, "producerEpoch": epoch}
    body["committed"] = talk.random.random() < 0.5
    return Step("EndTxn", talk.version("EndTxn", 0, 4), body)


def mark(talk: Talk) -> Step:
    """What a coordinator says to a leader; anybody may, who has the right to."""
    name, (topic, partition) = talk.one_of(*IDS), talk.partition()
    marker = {
        "producerId": talk.mostly(ProducerId(name), ProducerId("nobody"), chance=0.9),
        "producerEpoch": ProducerEpoch(name, talk.mostly(0, -1, 1)),
        "transactionResult": talk.random.random() < 0.5,
        "topics": [{"name": Named(topic), "partitionIndexes": [partition]}],
        "coordinatorEpoch": talk.mostly(0, -1),
    }
    return Step("WriteTxnMarkers", talk.version("WriteTxnMarkers", 1, 1), {"markers": [marker]})


def describe(talk: Talk) -> Step:
    names = [Named(name) for name in talk.one_of(IDS, IDS[:1], ("z",), ("x", "z"))]
    return Step("DescribeTransactions", 0, {"transactionalIds": names})


def list_them(talk: Talk) -> Step:
    version = talk.version("ListTransactions", 0, 1)
    states = talk.one_of([], ["Ongoing"], ["Empty", "CompleteCommit"], ["CompleteAbort"], ["Nonsense"], ["Dead"])
    producers = talk.one_of([], [ProducerId("x")], [ProducerId("nobody")], [ProducerId("x"), ProducerId("y")])
    body: dict[str, Any] = {"stateFilters": states, "producerIdFilters": producers}
    if version >= 1:
        body["durationFilter"] = talk.mostly(-1, 0, 10**9)
    return Step("ListTransactions", version, body)


def describe_producers(talk: Talk) -> Step:
    topic, partition = talk.partition()
    body = {"topics": [{"name": Named(topic), "partitionIndexes": [partition]}]}
    return Step("DescribeProducers", 0, body)


def fetch(talk: Talk) -> Step:
    version = talk.version("Fetch", 4)
    topic = talk.one_of(*talk.topics)
    partitions = [
        {"partition": index, "fetchOffset": talk.mostly(0, 1, 3), "partitionMaxBytes": 1 << 20}
        for index in range(talk.topics[topic])
    ]
    named = {"topicId": TopicId(topic)} if version >= 13 else {"topic": Named(topic)}
    body: dict[str, Any] = {
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 1 << 22,
        "isolationLevel": talk.mostly(1, 0),
        "topics": [{**named, "partitions": partitions}],
    }
    return Step("Fetch", version, body)


def end_offset(talk: Talk) -> Step:
    topic, partition = talk.partition()
    deleted = ("deleted", topic, partition) in talk.notes
    one = {"partitionIndex": partition, "timestamp": talk.one_of(-1, -1 if deleted else -3, 0)}
    body = {"replicaId": -1, "isolationLevel": talk.one_of(0, 1)}
    return Step("ListOffsets", 7, {**body, "topics": [{"name": Named(topic), "partitions": [one]}]})


def committed(talk: Talk) -> Step:
    topic = talk.one_of(*talk.topics)
    asked = [{"name": Named(topic), "partitionIndexes": [0, 1]}]
    body: dict[str, Any] = {"groups": [{"groupId": Named(talk.one_of(*GROUPS)), "topics": asked}]}
    body["requireStable"] = talk.random.random() < 0.5
    return Step("OffsetFetch", 8, body)


def prelude(talk: Talk) -> list[Step]:
    own = {"transactionTimeoutMs": 600_000}
    return [Step("InitProducerId", 4, {"transactionalId": Named(name), **own}, ("producer", name)) for name in IDS]


READING: Final = (describe, list_them, describe_producers, fetch, end_offset, committed)
"""What changes nothing."""

SUBJECT: Final = Subject(
    topics,
    {
        init: 3,
        add_partitions: 5,
        add_offsets: 2,
        commit_offsets: 3,
        produce: 6,
        end: 5,
        mark: 1,
        describe: 2,
        list_them: 1.5,
        describe_producers: 2,
        fetch: 2,
        end_offset: 2,
        committed: 2,
    },
    prelude,
)

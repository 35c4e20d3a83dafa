"""Words about logs: what is produced, fetched, searched and deleted."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from .batches import WRONGS, Batch
from .program import Named, Now, Number, ProducerEpoch, ProducerId, Step, Subject, Talk, TopicId, Topics

PRODUCERS: Final = ("p", "q")
TRANSACTIONAL: Final = ("x", "y")
HOUR: Final = 3_600_000
_CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": "100000", "message.timestamp.after.max.ms": "100000"},
    {"max.message.bytes": "200"},
    {"compression.type": "gzip"},
    {"compression.type": "uncompressed"},
    {"segment.bytes": "1048576", "index.interval.bytes": "0"},
    {"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"},
)


def topics(random: Random) -> Topics:
    """One without a configuration, and one or two with."""
    made: Topics = {"t": (2, {})}
    for name in ("u", "v")[: random.randint(1, 2)]:
        made[name] = 1, dict(random.choice(_CONFIGS))
    return made


def _times(talk: Talk) -> int | Now:
    return talk.mostly(
        Now(talk.random.randint(-50, 50)),
        talk.random.randint(0, 3000),
        Now(2 * HOUR),
        Now(-200_000),
        Now(200_000),
        -1,
        0,
        chance=0.5,
    )


def _rows(talk: Talk) -> tuple[tuple[bytes | None, bytes | None, Any], ...]:
    time = _times(talk)
    value = talk.mostly(b"v", None, b"", b"w" * 150, b"long " * 60)
    keys = talk.random.choices([b"k", None, b"l", b""], [6, 2, 1, 1], k=talk.one_of(1, 1, 2, 3))
    return tuple((key, value, time if at == 0 else _times(talk)) for at, key in enumerate(keys))


def _topic(name: str, version: int, named_until: int) -> dict[str, Any]:
    return {"topicId": TopicId(name)} if version > named_until else {"name": Named(name)}


def produce(talk: Talk) -> Step:
    """Plain ones, and those of producers with the sequence that comes next or another one."""
    version = talk.version("Produce", 3)
    topic, partition = talk.partition()
    rows = _rows(talk)
    compression = talk.mostly("none", "gzip", "snappy", "lz4", "zstd", chance=0.7)
    said: dict[str, Any] = {"compression": compression}
    transactional_id: Any = None
    kind = talk.random.random()
    magic = talk.mostly(2, 0, 1, chance=0.95)
    if magic < 2 and compression == "zstd":
        said["compression"] = "none"
    if magic == 2 and kind > 0.4:
        transactional = kind > 0.75
        producer = talk.one_of(*(TRANSACTIONAL if transactional else PRODUCERS))
        due = talk.notes.get((producer, topic, partition), 0)
        sequence = talk.mostly(due, due - 1, due - len(rows), due + 1, due + 5, 0, 2**31 - 1, chance=0.75)
        sequence = max(sequence, 0)
        if sequence == due:
            talk.notes[producer, topic, partition] = due + len(rows)
        said |= {"producer": (producer, talk.mostly(0, -1, 1, chance=0.93)), "sequence": sequence}
        said["transactional"] = talk.mostly(transactional, not transactional, chance=0.95)
        if transactional:
            version = min(version, 11)
            transactional_id = Named(producer)
        transactional_id = talk.mostly(transactional_id, None, chance=0.95)
    wrong = ""
    if magic == 2:
        wrong = talk.mostly("", *WRONGS, chance=0.8)
    batch: Any = Batch(rows, magic=magic, wrong=wrong, **said)
    partitions = [{"index": partition, "records": batch}]
    body: dict[str, Any] = {
        "acks": talk.mostly(-1, 1, 0, 2, chance=0.85),
        "timeoutMs": 5000,
        "topicData": [{**_topic(topic, version, 12), "partitionData": partitions}],
    }
    if version >= 3:
        body["transactionalId"] = transactional_id
    return Step("Produce", version, body)


def init(talk: Talk) -> Step:
    """A producer without a transactional id, or one of it."""
    version = talk.version("InitProducerId")
    producer = talk.one_of(*PRODUCERS)
    body: dict[str, Any] = {"transactionalId": None, "transactionTimeoutMs": talk.mostly(60_000, 0, -1, 2**31 - 1)}
    if version >= 3 and talk.random.random() < 0.2:
        body |= {"producerId": ProducerId(producer), "producerEpoch": ProducerEpoch(producer, talk.one_of(0, 0, 1, -1))}
    for key in [key for key in talk.notes if key[0] == producer]:
        del talk.notes[key]
    return Step("InitProducerId", version, body, ("producer", producer))


def _offset(talk: Talk) -> int:
    return talk.mostly(talk.random.randint(0, 12), -1, -2, 40, 2**62, chance=0.9)


def _epoch(talk: Talk) -> int:
    return talk.mostly(-1, 0, 1, 5, -2, chance=0.7)


def fetch(talk: Talk) -> Step:
    """Without a session, or with one that begins, goes on or is wrong."""
    version = talk.version("Fetch")
    asked: dict[str, list[dict[str, Any]]] = {}
    for _ in range(talk.one_of(1, 1, 2)):
        topic, partition = talk.partition()
        one: dict[str, Any] = {
            "partition": partition,
            "fetchOffset": _offset(talk),
            "partitionMaxBytes": talk.mostly(1 << 20, 0, 1, 100, chance=0.8),
        }
        if version >= 9:
            one["currentLeaderEpoch"] = _epoch(talk)
        if version >= 12:
            one["lastFetchedEpoch"] = talk.mostly(-1, 0, 1, 3, chance=0.8)
        if version >= 5:
            one["logStartOffset"] = -1
        asked.setdefault(topic, []).append(one)
    topics = [
        {**({"topicId": TopicId(topic)} if version >= 13 else {"topic": Named(topic)}), "partitions": partitions}
        for topic, partitions in asked.items()
    ]
    body: dict[str, Any] = {
        "maxWaitMs": 0,
        "minBytes": talk.mostly(1, 0, 500),
        "maxBytes": talk.mostly(1 << 22, 0, 1, 150, chance=0.9),
        "isolationLevel": talk.one_of(0, 1),
        "topics": topics,
    }
    if version < 15:
        body["replicaId"] = -1
    learns = None
    if version >= 7:
        kind = talk.random.random()
        if kind < 0.1:
            body |= {"sessionId": talk.mostly(0, Number("s")), "sessionEpoch": 0}
            learns, talk.notes["session"] = ("session", "s"), 1
        elif kind < 0.3:
            due = talk.notes.get("session", 1)
            body |= {"sessionId": talk.mostly(Number("s"), 0, Number("s", 1)), "sessionEpoch": due}
            talk.notes["session"] = due + 1
            if talk.random.random() < 0.2:
                body["sessionEpoch"] = talk.one_of(due + 1, due - 1, -1, -2)
            if talk.random.random() < 0.5:
                body["topics"] = []
            if talk.random.random() < 0.3:
                topic, partition = talk.partition()
                named = {"topicId": TopicId(topic)} if version >= 13 else {"topic": Named(topic)}
                body["forgottenTopicsData"] = [{**named, "partitions": [partition]}]
    return Step("Fetch", version, body, learns)


def list_offsets(talk: Talk) -> Step:
    """All special times, and others."""
    version = talk.version("ListOffsets")
    topic, partition = talk.partition()
    time = talk.one_of(-1, -2, -3, -4, -5, -6, -7, 0, 1, 5000, talk.random.randint(0, 3000), _times(talk), 2**62)
    if time == -3 and ("deleted", topic, partition) in talk.notes:
        time = -1  # Kafka's record with the greatest timestamp may be one that was deleted
    one: dict[str, Any] = {"partitionIndex": partition, "timestamp": time}
    if version >= 4:
        one["currentLeaderEpoch"] = _epoch(talk)
    body: dict[str, Any] = {"replicaId": -1, "topics": [{"name": Named(topic), "partitions": [one]}]}
    if version >= 2:
        body["isolationLevel"] = talk.one_of(0, 1)
    return Step("ListOffsets", version, body)


def epoch_ends(talk: Talk) -> Step:
    version = talk.version("OffsetForLeaderEpoch")
    topic, partition = talk.partition()
    one = {"partition": partition, "currentLeaderEpoch": _epoch(talk), "leaderEpoch": talk.one_of(0, 0, 1, -1, 3)}
    body: dict[str, Any] = {"topics": [{"topic": Named(topic), "partitions": [one]}]}
    if version >= 3:
        body["replicaId"] = talk.mostly(-1, -2)
    return Step("OffsetForLeaderEpoch", version, body)


def delete_records(talk: Talk) -> Step:
    version = talk.version("DeleteRecords")
    topic, partition = talk.partition()
    talk.notes["deleted", topic, partition] = True
    one = {"partitionIndex": partition, "offset": talk.mostly(talk.random.randint(0, 5), -1, -2, 100, chance=0.7)}
    return Step("DeleteRecords", version, {"topics": [{"name": Named(topic), "partitions": [one]}], "timeoutMs": 5000})


def describe_producers(talk: Talk) -> Step:
    topic, partition = talk.partition()
    body = {"topics": [{"name": Named(topic), "partitionIndexes": [partition]}]}
    return Step("DescribeProducers", talk.version("DescribeProducers"), body)


def init_transactional(talk: Talk) -> Step:
    version = talk.version("InitProducerId")
    producer = talk.one_of(*TRANSACTIONAL)
    body: dict[str, Any] = {"transactionalId": Named(producer), "transactionTimeoutMs": 600_000}
    for key in [key for key in talk.notes if key[0] == producer]:
        del talk.notes[key]
    return Step("InitProducerId", version, body, ("producer", producer))


def add_partitions(talk: Talk) -> Step:
    version = talk.version("AddPartitionsToTxn", 0, 3)
    producer = talk.one_of(*TRANSACTIONAL)
    topic, partition = talk.partition()
    body = {
        "v3AndBelowTransactionalId": Named(producer),
        "v3AndBelowProducerId": ProducerId(producer),
        "v3AndBelowProducerEpoch": ProducerEpoch(producer),
        "v3AndBelowTopics": [{"name": Named(topic), "partitions": [partition]}],
    }
    return Step("AddPartitionsToTxn", version, body)


def end(talk: Talk) -> Step:
    version = talk.version("EndTxn", 0, 4)
    producer = talk.one_of(*TRANSACTIONAL)
    body = {
        "transactionalId": Named(producer),
        "producerId": ProducerId(producer),
        "producerEpoch": ProducerEpoch(producer),
        "committed": talk.random.random() < 0.5,
    }
    return Step("EndTxn", version, body)


def prelude(talk: Talk) -> list[Step]:
    """Producers: without one, records are of somebody whom no broker knows."""
    plain = {"transactionalId": None, "transactionTimeoutMs": 60_000}
    begun = [Step("InitProducerId", 4, plain, ("producer", name)) for name in PRODUCERS]
    own = {"transactionTimeoutMs": 600_000}
    return begun + [
        Step("InitProducerId", 4, {"transactionalId": Named(name), **own}, ("producer", name)) for name in TRANSACTIONAL
    ]


SUBJECT: Final = Subject(
    topics,
    {
        produce: 12,
        fetch: 8,
        list_offsets: 6,
        epoch_ends: 2,
        delete_records: 1,
        describe_producers: 2,
        init: 2,
        init_transactional: 1.5,
        add_partitions: 2,
        end: 2,
    },
    prelude,
)

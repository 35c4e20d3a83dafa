"""Words about transactions of version 2 (KIP-890): no partition is added by itself, each end begins another epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from . import transaction_talk
from .program import ProducerEpoch, ProducerId, Step, Subject, Talk
from .transaction_talk import IDS


def _who(talk: Talk) -> tuple[str, dict[str, Any]]:
    """A transactional id, and mostly its producer's id and epoch."""
    name = talk.mostly(talk.one_of(*IDS), "z", chance=0.97)
    whose = talk.mostly(name, *IDS, chance=0.95)
    epoch = ProducerEpoch(whose, talk.mostly(0, -1, 1, -2, chance=0.85))
    return name, {"producerId": ProducerId(whose), "producerEpoch": epoch}


def produce(talk: Talk) -> Step:
    return replace(_opening(talk, transaction_talk.produce(talk)), version=12)


def _opening(talk: Talk, step: Step) -> Step:
    """What opens a transaction, if it is right."""
    talk.notes["open", step.body["transactionalId"].name] = True
    return step


def commit_offsets(talk: Talk) -> Step:
    step = _opening(talk, transaction_talk.commit_offsets(talk))
    later = {"generationIdOrMemberEpoch": talk.mostly(-1, 0, 1), "memberId": talk.mostly("", "somebody")}
    topics = [
        {**topic, "partitions": [{"committedLeaderEpoch": -1, **one} for one in topic["partitions"]]}
        for topic in step.body["topics"]
    ]
    return replace(step, version=5, body={"groupInstanceId": None, **later, **step.body, "topics": topics})


def end(talk: Talk) -> Step:
    name, producer = _who(talk)
    body = {"transactionalId": transaction_talk.Named(name), **producer, "committed": talk.random.random() < 0.6}
    is_right = producer["producerEpoch"].more == 0 and producer["producerId"].producer == name
    if is_right:
        transaction_talk.forget(talk, name)
        talk.notes.pop(("open", name), None)
    return Step("EndTxn", 5, body, ("producer", name) if is_right else None)


def mark(talk: Talk) -> Step:
    """Never of a later epoch: Kafka asks the log before it adds a partition, and ours the coordinator."""
    step = transaction_talk.mark(talk)
    (marker,) = step.body["markers"]
    epoch = marker["producerEpoch"]
    return replace(step, body={"markers": [{**marker, "producerEpoch": replace(epoch, more=min(epoch.more, 0))}]})


SUBJECT: Final = Subject(
    transaction_talk.topics,
    {
        **{word: weight for word, weight in transaction_talk.SUBJECT.words.items() if word in transaction_talk.READING},
        transaction_talk.init: 2,
        mark: 0.5,
        transaction_talk.add_partitions: 0.5,
        transaction_talk.end: 0.3,
        produce: 8,
        commit_offsets: 3,
        end: 6,
    },
    transaction_talk.SUBJECT.prelude,
)

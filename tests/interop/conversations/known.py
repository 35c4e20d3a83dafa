"""Where our answers are others on purpose, each with its reason.

What no vocabulary says, because both do it differently and nobody says it: isolation levels but 0 and 1, negative
limits of a Fetch, records that are null (Kafka fails: UNKNOWN_SERVER_ERROR, or no answer); batches that claim append
time, a delete horizon or an epoch below 0, or have a byte too many (taken by Kafka in part, refused here); markers of
another coordinator's epoch (ours are not fenced by them); who joins a classic group while another is in it (it waits);
the newest record where records were deleted (Kafka's may be one of those).
Epochs of KIP-848 are counted from what a group begins with: docs/decisions.md.
"""

from __future__ import annotations

from typing import Any, Final

from .answers import codes
from .batches import Batch
from .program import Step

HUNG_UP = "hung up"


def is_known(step: Step, paths: frozenset[str], theirs: Any, ours: Any) -> str | None:
    """The reason of a difference, if it is one of those on purpose."""
    if theirs == HUNG_UP and step.api in ("CreateAcls", "DescribeAcls", "DeleteAcls") and 42 in codes(ours):
        return "what is no type of ACLs is INVALID_REQUEST, where Kafka closes the connection"
    if theirs == HUNG_UP or ours == HUNG_UP:
        return None
    their_codes, our_codes = list(codes(theirs)), list(codes(ours))
    if step.api == "Fetch" and step.version < 10 and 76 in our_codes:
        return "Fetch 9 and older read no topic of zstd, as with Kafka before 4.0: no client of theirs can"
    if -1 in their_codes and -1 not in our_codes:
        return "what Kafka did not foresee (UNKNOWN_SERVER_ERROR) is done, or refused by a name"
    if step.api == "CreateTopics" and paths == {".topics.topicId"} and step.body["validateOnly"]:
        return "a topic that is not made has no id"
    if step.api == "CreateAcls" and any(not one["host"] for one in step.body["creations"]):
        return "an ACL says which hosts it is about"
    if step.api == "ElectLeaders" and set(codes(theirs)) == {42} == set(codes(ours)):
        return "a request for an election of no type is refused as a whole alone"
    if step.api == "CreateTopics" and paths == {".topics.configs.value"}:
        return "a configuration is told as it is read, where Kafka's answer says again what was asked"
    if step.api == "Fetch" and paths == {".responses.partitions.records"} and _is_less(theirs, ours):
        return "a fetch ends with its segment at Kafka, whose segments end by the records' timestamps"
    if step.api == "Fetch" and paths == {".responses.partitions.abortedTransactions"} and _is_told_ahead(theirs, ours):
        return (
            "Kafka also tells of transactions that were aborted behind what may be read: it looks up to its next index"
        )
    if step.api in _OF_GROUPS and _forgotten(step.api, theirs, ours):
        return "a group with neither members nor offsets is gone, for which Kafka looks every ten minutes"
    if step.api == "DeleteGroups" and step.body["groupsNames"] == [""]:
        return "no group has an empty name"
    if step.api == "Produce" and paths == {".responses.partitionResponses.logAppendTimeMs"}:
        return "of a duplicate Kafka tells its greatest timestamp as the time of appending, whatever the topic's type"
    if step.api == "Produce" and set(their_codes) == {45} and not any(our_codes) and step.body["transactionalId"]:
        return (
            "a transactional batch that was refused leaves its sequence behind at Kafka, as if it were verified still"
        )
    if step.api in ("AddOffsetsToTxn", "OffsetCommit") and not step.body["groupId"]:
        return "no group has an empty name"
    if (
        step.api == "ConsumerGroupHeartbeat"
        and paths == {".assignment.topicPartitions"}
        and step.body["memberEpoch"] == 0
    ):
        return "who joins again before it has given up a partition gets that back with its next heartbeat, not at once"
    if step.api == "InitProducerId" and "producerId" in step.body and {0} < {*their_codes, *our_codes} <= {0, 47, 90}:
        return "who says its producer id while its transaction is open: Kafka aborts that first, whatever the epoch"
    if step.api == "EndTxn" and our_codes == [90] and their_codes in ([0], [48]) and step.version >= 5:
        return "who was fenced before a transaction of version 1 is taken for who ended it, and given its owner's epoch"
    if step.api == "TxnOffsetCommit" and 49 in our_codes and {*their_codes} <= {0, 25}:
        return "where a producer's transaction is open already, Kafka does not look at the transactional id once more"
    if step.api == "Produce" and their_codes == [47] and any(our_codes) and step.body["transactionalId"]:
        return "whether a batch is of a transaction is asked first, Kafka looks at what the log knows of its producer"
    if step.api == "Produce" and all(our_codes) and all(their_codes) and our_codes and their_codes:
        if _batch(step).wrong or _batch(step).magic < 2:
            return "of what is wrong with a malformed batch, either names what it finds first"
        if step.body["acks"] not in (-1, 0, 1):
            return "acks that are none are refused first, Kafka looks at them last"
    return None


def sets_apart(step: Step, theirs: Any, ours: Any) -> bool:
    """Whether the brokers know different things after a difference, so that there is nothing more to compare."""
    if theirs == HUNG_UP or ours == HUNG_UP:
        return not all(codes(ours if theirs == HUNG_UP else theirs))
    if step.api in _OF_GROUPS:
        return False
    if step.api == "ConsumerGroupHeartbeat":
        return True
    return [*codes(theirs)].count(0) != [*codes(ours)].count(0)


def _batch(step: Step) -> Batch:
    batch = step.body["topicData"][0]["partitionData"][0]["records"]
    assert isinstance(batch, Batch)
    return batch


_OF_GROUPS: Final = frozenset(
    {"ListGroups", "DescribeGroups", "DeleteGroups", "OffsetDelete", "OffsetCommit", "TxnOffsetCommit"}
)


def _forgotten(api: str, theirs: Any, ours: Any) -> bool:
    """Whether all that differs is that theirs knows of groups in which nothing is."""
    if api in ("OffsetDelete", "OffsetCommit", "TxnOffsetCommit"):
        return set(codes(ours)) <= {69, 22} and 69 not in codes(theirs) and {*codes(theirs)} <= {0, 25}
    found = "results" if api == "DeleteGroups" else "groups"
    there = {one["groupId"]: one for one in ours[found]}
    apart = [one for one in theirs[found] if one != there.get(one["groupId"])]
    if api == "DeleteGroups":
        return all((one["errorCode"], there[one["groupId"]]["errorCode"]) == (0, 69) for one in apart)
    return all(
        one.get("groupState", "Empty") == "Empty" and there.get(one["groupId"], {}).get("groupState", "Dead") == "Dead"
        for one in apart
    )


def _is_told_ahead(theirs: Any, ours: Any) -> bool:
    """Whether what else theirs tells was aborted is not readable yet."""
    for topic, other in zip(theirs["responses"], ours["responses"], strict=True):
        for told, known in zip(topic["partitions"], other["partitions"], strict=True):
            there = known["abortedTransactions"] or ()
            ahead = [one for one in told["abortedTransactions"] or () if one not in there]
            if any(one["firstOffset"] < told["lastStableOffset"] for one in ahead):
                return False
    return True


def _is_less(theirs: Any, ours: Any) -> bool:
    """Whether a fetch tells of each partition what the other tells, or the beginning of it."""

    def told(answer: Any) -> dict[Any, Any]:
        topics = answer["responses"]
        named = [(topic.get("topic", topic.get("topicId")), topic["partitions"]) for topic in topics]
        return {(name, one["partitionIndex"]): one["records"] or [] for name, partitions in named for one in partitions}

    there = told(ours)
    return all(there.get(key, [])[: len(records)] == records for key, records in told(theirs).items())

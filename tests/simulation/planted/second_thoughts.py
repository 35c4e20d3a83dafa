"""Defects that were written after the workload and the judge, as somebody would who wants to get past them."""

from __future__ import annotations

from .defect import Defect, Edit

_CLEANING = "tagwire.broker.storage.cleaning:Cleaning"
_PRODUCERS = "tagwire.broker.storage.producer_state:ProducerState"

SECOND_THOUGHTS = (
    Defect(
        "compaction-keeps-no-producer",
        (
            Edit(
                f"{_CLEANING}._is_last_of_producer",
                "return batch.last_offset == known.sent[-1].last_offset",
                "return batch.last_offset < known.sent[-1].last_offset",
            ),
        ),
        "compaction takes a producer's last batch whole: a restart does not know which number comes next",
        ("producer-forgotten", "duplicate", "sequence-out-of-order"),
        50,
        "",
    ),
    Defect(
        "marker-goes-first",
        (
            Edit(
                f"{_CLEANING}.keep",
                "if may_go and is_over:",
                "if (may_go and is_over) or batch.is_control:",
            ),
        ),
        "compaction takes the end of a transaction before its records: after a restart it is open again",
        ("stuck-transaction", "stable-stands-still", "stable-passes-open"),
        50,
        "",
    ),
    Defect(
        "retention-by-the-file",
        (
            Edit(
                "tagwire.broker.storage.retention:is_expired",
                "newest = segment.newest[0]",
                "newest = (segment.began_ms() or 0) if segment.newest[0] >= 0 else -1",
            ),
        ),
        "retention by time looks at when a segment began, not at its newest record",
        ("removed-too-much",),
        50,
        "",
    ),
    Defect(
        "keeps-a-segment-less",
        (
            Edit(
                "tagwire.broker.storage.log:PartitionLog._expired_before",
                "            surplus -= segment.size\n"
                "            too_large = config.retention_bytes >= 0 and surplus >= 0\n",
                "            too_large = config.retention_bytes >= 0 and surplus > 0\n"
                "            surplus -= segment.size\n",
            ),
        ),
        "retention by size takes the segment with which the log is as small as it is to be",
        ("removed-too-much",),
        50,
        "",
    ),
    Defect(
        "later-than-the-time",
        (
            Edit(
                "tagwire.broker.storage.log_reading:LogView.offset_for_timestamp",
                "if segment.base_offset > self.end.segment or segment.newest[0] < timestamp:",
                "if segment.base_offset > self.end.segment or segment.newest[0] <= timestamp:",
            ),
        ),
        "the first record of a time is looked for in the next segment, where it is the newest of its own",
        ("wrong-lookup",),
        50,
        "",
    ),
    Defect(
        "init-again-bumps-again",
        (
            Edit(
                "tagwire.broker.transactions.coordinator:Transactions._initialize",
                "if requester == transaction.renewed and transaction.state is State.EMPTY:",
                "if requester == transaction.renewed and transaction.state is State.COMPLETE_ABORT:",
            ),
            Edit(
                "tagwire.broker.transactions.coordinator:Transactions._initialize",
                "if requester not in ((transaction.producer_id, transaction.epoch), transaction.renewed):",
                "if requester != (transaction.producer_id, transaction.epoch):",
            ),
        ),
        "a producer whose InitProducerId had no answer asks again, and is fenced by its own first request",
        ("fenced-by-nobody", "not-refused"),
        50,
        "",
    ),
    Defect(
        "gaps-are-taken",
        (
            Edit(
                f"{_PRODUCERS}.check",
                "if origin.first_sequence != expected:",
                "if origin.first_sequence < expected:",
            ),
        ),
        "a batch is taken although the one before it is not there",
        ("sequence-out-of-order", "nonmonotonic-send", "lost-write", "not-refused"),
        50,
        "",
    ),
    Defect(
        "newer-epoch-begins-anywhere",
        (
            Edit(
                f"{_PRODUCERS}.check",
                "if same_epoch and known.sent else 0",
                "if same_epoch and known.sent else origin.first_sequence",
            ),
        ),
        "the first batch of a producer's new epoch is taken, whatever its number",
        ("sequence-out-of-order", "nonmonotonic-send", "not-refused"),
        50,
        "",
    ),
    Defect(
        "session-keeps-the-leader-epoch",
        (
            Edit(
                "tagwire.broker.fetch_sessions:FetchPartition.update",
                "other.fetch_offset, other.max_bytes, other.leader_epoch",
                "other.fetch_offset, other.max_bytes, self.leader_epoch",
            ),
        ),
        "a fetch session goes on with the leader epoch that it began with: who has learned the next one is refused",
        ("unavailable", "unseen", "group-stalled", "not-refused"),
        50,
        "",
    ),
    Defect(
        "session-known-though-lost",
        (
            Edit(
                "tagwire.client.fetch_sessions:FetchSession.request",
                "if known.get(partition) != one",
                "if partition not in known or known[partition].offset != one.offset",
            ),
        ),
        "a reader does not tell its fetch session of a newer leader epoch or topic, only of offsets",
        ("unavailable", "unseen", "group-stalled", "poll-skip", "not-refused"),
        50,
        "",
    ),
    Defect(
        "older-metadata-wins",
        (
            Edit(
                "tagwire.client.metadata_cache:_newest",
                "return partition if before is None or partition.leader_epoch >= before.leader_epoch else before",
                "return before or partition",
            ),
        ),
        "metadata that is asked for anew does not change who leads what is known already",
        ("unavailable", "unseen", "group-stalled"),
        50,
        "",
    ),
    Defect(
        "position-over-a-seek",
        (
            Edit(
                "tagwire.client.consuming.consumer_work:ConsumerWork._find",
                "if not one.needs_position or self.subscription.assigned.get(one.partition) is not one:",
                "if self.subscription.assigned.get(one.partition) is not one:",
            ),
        ),
        "the committed offset comes late, and takes a member away from where it has sought to meanwhile",
        ("seek-ignored", "nonmonotonic-poll", "poll-skip"),
        50,
        "",
    ),
    Defect(
        "kept-partition-begins-anew",
        (
            Edit(
                "tagwire.client.consuming.subscription_state:SubscriptionState.add",
                "            if partition not in self.assigned\n",
                "",
            ),
            Edit(
                "tagwire.client.consuming.classic_membership:ClassicMembership._complete",
                "await self._handler.assign(partitions - owned)",
                "await self._handler.assign(partitions)",
            ),
        ),
        "after a rebalance a member goes back to what is committed also where it keeps the partition",
        ("nonmonotonic-poll", "int-nonmonotonic-poll"),
        50,
        "",
    ),
    Defect(
        "refused-commit-is-done",
        (
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits._codes",
                "return list(refused.values())",
                "return [code for code in refused.values() if code != 15 and code != 16]",
            ),
        ),
        "a commit that its group's old coordinator refuses counts as made",
        ("group-offset-lost", "group-offset-back"),
        50,
        "",
    ),
    Defect(
        "pending-of-one-partition",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets.prepare",
                "self._put(self._pending.setdefault(producer_id, {}), offsets)",
                "self._put(self._pending.setdefault(producer_id, {}), dict([*offsets.items()][:1]))",
            ),
        ),
        "of a transaction's offsets of several partitions only one counts when it commits",
        ("group-offset-lost", "group-offset-back", "made-twice", "not-refused"),
        50,
        "",
    ),
    Defect(
        "member-of-an-older-epoch",
        (
            Edit(
                "tagwire.broker.groups.consumer_member:reconciled",
                "if revoking and (owned is None or owned & revoking):",
                "if revoking and owned is not None and owned & revoking:",
            ),
        ),
        "a member of KIP-848 that does not say what it has counts as one that has given up what it was to",
        ("two-owners", "assignment-ignored", "not-refused"),
        50,
        "",
    ),
    Defect(
        "static-member-is-not-fenced",
        (
            Edit(
                "tagwire.broker.groups.classic_group:ClassicGroup._member",
                "if self._static[instance_id] != member_id:",
                "if self._static[instance_id] not in self.members:",
            ),
            Edit(
                "tagwire.broker.groups.classic_group:ClassicGroup._member",
                "if member_id not in self.members:",
                "member_id = self._static.get(instance_id or '', member_id)\n        if member_id not in self.members:",
            ),
        ),
        "two members of one instance id are taken for one: the first goes on when the second has its place",
        ("two-owners", "fenced-commit", "not-refused"),
        50,
        "",
    ),
    Defect(
        "done-though-some-are-open",
        (
            Edit(
                "tagwire.spark.sink.driver:_end_all",
                "    if unknown:\n",
                "    if unknown and not commit:\n",
            ),
        ),
        "a driver says that a micro-batch is carried out when it does not know of all of its transactions",
        ("sink-row-lost",),
        50,
        "",
    ),
    Defect(
        "undecided-is-taken-for-decided",
        (
            Edit(
                "tagwire.spark.sink.driver:Driver._carry_out",
                "ended_otherwise = _end_all(client, decision.transactions, commit=True)",
                "ended_otherwise = _end_all(client, decision.transactions[:1], commit=True)",
            ),
        ),
        "of a micro-batch that was decided only the first transaction is committed",
        ("sink-row-lost",),
        50,
        "",
    ),
)

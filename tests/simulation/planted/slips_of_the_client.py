"""Defects of the client as they slip in: an offset that is one off, a state that outlives its time, a lost wake-up."""

from __future__ import annotations

from .defect import Defect, Edit

_CORE = "tagwire.client.consuming.consumer_core:ConsumerCore"
_CLASSIC = "tagwire.client.consuming.classic_membership:ClassicMembership"
_WATCH = "tagwire.client.consuming.topic_watch:TopicWatch"
_ACCUMULATOR = "tagwire.client.producing.record_accumulator:RecordAccumulator"
_LOOKUPS = "tagwire.client.position_lookups:PositionLookups"

SLIPS_OF_THE_CLIENT = (
    Defect(
        "paused-records-are-dropped",
        (
            Edit(
                "tagwire.client.fetch_positions:FetchBuffer.take",
                "                self._paused.setdefault(position, deque()).append(fetched)\n",
                "                self._taken(fetched)\n",
            ),
        ),
        "what was fetched of a partition that is paused is dropped, and passed when it is resumed",
        ("poll-skip", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "paused-and-still-fetched",
        (
            Edit(
                "tagwire.client.fetch_positions:FetchBuffer.take",
                "if fetched.seeks == position.seeks and (position.is_paused or position in self._paused):",
                "if fetched.seeks == position.seeks and position in self._paused:",
            ),
            Edit(
                "tagwire.client.fetch_collector:FetchCollector._next_run",
                "                if not run.position.is_paused:\n                    return run\n",
                "                return run\n",
            ),
        ),
        "records of a paused partition are given out",
        ("paused-read",),
        50,
        "",
    ),
    Defect(
        "commits-one-too-few",
        (
            Edit(
                "tagwire.client.consuming.pending_commit:AutomaticCommit.offsets",
                "partition: OffsetAndMetadata(*one.consumed)",
                "partition: OffsetAndMetadata(max(one.consumed.offset - 1, 0), one.consumed.leader_epoch)",
            ),
        ),
        "an automatic commit leaves out the record that was given last: it is given again after a rebalance",
        ("given-again",),
        100,
        "",
    ),
    Defect(
        "revoked-without-a-commit",
        (
            Edit(
                f"{_CORE}._rebalance",
                "if event.kind is RebalanceKind.REVOKED and self._settings.auto_commit:",
                "if event.kind is RebalanceKind.LOST and self._settings.auto_commit:",
            ),
        ),
        "a member with automatic commits gives up partitions without committing what it was given of them",
        ("given-again",),
        100,
        "",
    ),
    Defect(
        "closed-without-a-commit",
        (
            Edit(
                f"{_CORE}._give_up",
                "            if self._settings.auto_commit:\n                await self._commit_quietly(deadline)\n",
                "",
            ),
        ),
        "a member with automatic commits leaves without committing what it was given",
        ("given-again",),
        100,
        "",
    ),
    Defect(
        "pattern-is-matched-once",
        (
            Edit(
                f"{_WATCH}.refresh",
                "        if self._pattern is not None:\n",
                "        if self._pattern is not None and not self.topics:\n",
            ),
        ),
        "a member with a pattern does not see topics that came later",
        ("unowned", "group-unseen", "group-stalled"),
        50,
        "",
    ),
    Defect(
        "growth-is-not-seen",
        (
            Edit(
                f"{_WATCH}.has_changed",
                "return self._assigned is not None and self._assigned != self._known",
                "return self._assigned is not None and self._assigned.keys() != self._known.keys()",
            ),
        ),
        "the leader of a group does not see that a topic has more partitions",
        ("unowned", "group-unseen", "group-stalled"),
        50,
        "",
    ),
    Defect(
        "revokes-and-does-not-join-again",
        (
            Edit(
                f"{_CLASSIC}._complete",
                "            await self._handler.revoke(revoked)\n"
                '            self.request_rejoin("need to revoke partitions and re-join")\n',
                "            await self._handler.revoke(revoked)\n",
            ),
        ),
        "what a cooperative member has given up is nobody's until the next rebalance",
        ("unowned", "group-stalled", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "out-of-range-to-the-other-end",
        (
            Edit(
                f"{_LOOKUPS}._ranged",
                "offset = first if self._reset.timestamp == EARLIEST else last",
                "offset = first if self._reset.timestamp != EARLIEST else last",
            ),
        ),
        "a reader whose records were deleted goes on at the wrong end",
        ("poll-skip", "seek-ignored", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "truncated-to-where-it-was",
        (
            Edit(
                f"{_LOOKUPS}._validated",
                "        elif result.offset < position.offset:\n",
                "        elif result.offset > position.offset:\n",
            ),
        ),
        "a reader is told that what it has read ends later, and skips to there",
        ("poll-skip", "group-unseen"),
        100,
        "",
    ),
    Defect(
        "halves-have-one-number",
        (
            Edit(
                "tagwire.client.producing.sequence_numbers:split_sequences",
                "        sequence = records.next_sequence(sequence, part.count)\n",
                "",
            ),
        ),
        "both halves of a batch that was too large have the number of the first",
        ("lost-write", "nonmonotonic-send", "unavailable"),
        100,
        "",
    ),
    Defect(
        "second-half-first",
        (
            Edit(
                "tagwire.client.producing.producer_batch:ProducerBatch.split",
                "part.order = (*self.order, len(parts))",
                "part.order = (*self.order, -len(parts))",
            ),
        ),
        "the second half of a batch that was too large is sent before the first",
        ("nonmonotonic-send", "int-nonmonotonic-send"),
        50,
        "",
    ),
    Defect(
        "index-in-the-whole",
        (
            Edit(
                "tagwire.client.producing.producer_batch:ProducerBatch.part_of",
                "                index -= part.count\n",
                "                index = max(index - part.count + 1, 0)\n",
            ),
        ),
        "of a batch that was too large records of the second half are told to be one offset further",
        ("inconsistent-offsets",),
        100,
        "",
    ),
    Defect(
        "room-of-the-failed-is-lost",
        (
            Edit(
                f"{_ACCUMULATOR}.complete",
                "                self._bytes -= batch.size\n",
                "                self._bytes -= 0 if error else batch.size\n",
            ),
        ),
        "the room that a failed batch took in a producer's buffer is never free again",
        ("not-refused",),
        50,
        "",
    ),
    Defect(
        "partitions-of-the-last-transaction",
        (
            Edit(
                "tagwire.client.producing.transaction_manager:TransactionManager.end",
                "            self._partitions.clear()\n",
                "",
            ),
        ),
        "a producer takes the partitions of its last transaction for those of the next one",
        ("unavailable", "stuck-transaction"),
        50,
        "",
    ),
    Defect(
        "found-at-the-next-partition",
        (
            Edit(
                "tagwire.client.offsets:_take",
                "                found[topic_partition] = partition.offset\n",
                "                found[topic_partition] = max(p.offset for p in topic.partitions)\n",
            ),
        ),
        "where several partitions of a topic begin or end is told with the offset of one",
        ("poll-skip", "wrong-lookup", "unseen", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "committed-of-another-topic",
        (
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits._take",
                "found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(",
                "found[TopicPartition(topics[-1].name, each.partition_index)] = OffsetAndMetadata(",
            ),
        ),
        "the committed offset of a partition is taken for that of the same number in another topic",
        ("group-skip", "group-offset-back", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "who-waits-is-remembered",
        (
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits._turn",
                "            self._turns.remove(turn)\n",
                "            if len(self._turns) > 1:\n                self._turns.remove(turn)\n",
            ),
        ),
        "a commit that nobody follows is never over: who leaves waits for it",
        ("failed-for-nothing", "not-committed", "group-stalled"),
        50,
        "",
    ),
)

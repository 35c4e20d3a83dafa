"""Defects of the broker as they slip in: a boundary, a state that is not reset, room that is never given back."""

from __future__ import annotations

from .defect import Defect, Edit

_VIEW = "tagwire.broker.storage.log_reading:LogView"
_LOG = "tagwire.broker.storage.log:PartitionLog"
_PRODUCERS = "tagwire.broker.storage.producer_state:ProducerState"
_GROUP = "tagwire.broker.groups.classic_group:ClassicGroup"
_TRANSACTIONS = "tagwire.broker.transactions.coordinator:Transactions"
_CLEANING = "tagwire.broker.storage.cleaning:Cleaning"

SLIPS_OF_THE_BROKER = (
    Defect(
        "segment-of-the-start-goes",
        (
            Edit(
                f"{_LOG}._take_before_start",
                "self._segments[1].base_offset <= self._start",
                "self._segments[0].base_offset < self._start",
            ),
        ),
        "DeleteRecords takes the segment that holds the offset up to which it deletes",
        ("lost-write", "removed-too-much", "unseen", "offsets-out-of-order"),
        50,
        "",
    ),
    Defect(
        "later-than-the-time-in-its-batch",
        (
            Edit(
                f"{_VIEW}.offset_for_timestamp",
                "if record.timestamp >= timestamp and record.offset >= self.start:",
                "if record.timestamp > timestamp and record.offset >= self.start:",
            ),
        ),
        "who asks for the time of a record is told the one after it",
        ("wrong-lookup",),
        50,
        "",
    ),
    Defect(
        "time-before-the-start",
        (
            Edit(
                f"{_VIEW}.offset_for_timestamp",
                "if record.timestamp >= timestamp and record.offset >= self.start:",
                "if record.timestamp >= timestamp:",
            ),
        ),
        "the first record of a time may be one that was deleted",
        ("wrong-lookup",),
        50,
        "",
    ),
    Defect(
        "newest-of-the-active-segment",
        (
            Edit(
                f"{_VIEW}.newest_timestamp",
                "return max([self.end.newest, *closed])",
                "return self.end.newest if self.end.newest >= 0 else max(closed, default=-1)",
            ),
        ),
        "the greatest timestamp is looked for in the segment that is written to alone",
        ("wrong-lookup",),
        50,
        "",
    ),
    Defect(
        "aborted-that-begins-last",
        (
            Edit(
                f"{_VIEW}.aborted",
                "if transaction.first_offset <= last_offset]",
                "if transaction.first_offset < last_offset]",
            ),
        ),
        "a response that ends with the first record of an aborted transaction does not tell of it",
        ("aborted-read", "abort-untold"),
        50,
        "",
    ),
    Defect(
        "first-of-the-open-is-stable",
        (
            Edit(
                "tagwire.broker.storage.scan:ending_before",
                "if last_offset >= offset or position + size > len(data):",
                "if last_offset > offset or position + size > len(data):",
            ),
        ),
        "readers of committed records are given the first record of an open transaction",
        ("uncommitted-read", "aborted-read"),
        50,
        "",
    ),
    Defect(
        "producers-expire-at-once",
        (
            Edit(
                f"{_PRODUCERS}.expire",
                "producer.last_ms < now_ms - EXPIRES_AFTER_MS",
                "producer.last_ms < now_ms",
            ),
        ),
        "a producer is forgotten as soon as it sends nothing for a moment: what it sends again is stored twice",
        ("duplicate", "producer-forgotten", "not-refused", "sequence-out-of-order"),
        50,
        "",
    ),
    Defect(
        "window-of-four",
        (Edit(f"{_PRODUCERS}.take", "[-WINDOW:]", "[-WINDOW + 1 :]"),),
        "of a producer four batches are known, and five may be under way",
        ("not-refused", "nonmonotonic-send", "sequence-out-of-order"),
        50,
        "",
    ),
    Defect(
        "sequences-do-not-wrap",
        (
            Edit(
                f"{_PRODUCERS}.check",
                "next_sequence(known.last_sequence, 1)",
                "known.last_sequence + 1",
            ),
        ),
        "after the greatest sequence number a partition waits for one that there is not",
        ("not-refused",),
        50,
        "",
    ),
    Defect(
        "snapshot-knows-one-record",
        (
            Edit(
                "tagwire.broker.storage.producer_state:_producer",
                "first = (entry.last_sequence - entry.offset_delta) & 0x7FFFFFFF",
                "first = entry.last_sequence",
            ),
        ),
        "after a clean start a producer's last batch is known by its last record: sent again it is refused",
        ("not-refused", "producer-forgotten"),
        50,
        "",
    ),
    Defect(
        "old-numbers-in-a-new-epoch",
        (
            Edit(
                f"{_PRODUCERS}.take",
                "known = Producer(origin.producer_id, origin.epoch, (), timestamp",
                "known = Producer(origin.producer_id, origin.epoch, known.sent if known else (), timestamp",
            ),
        ),
        "a producer that was fenced by a marker is not let begin from 0",
        ("unavailable", "not-refused", "unseen", "producer-forgotten"),
        50,
        "",
    ),
    Defect(
        "closed-at-the-recovery-point",
        (
            Edit(
                "tagwire.broker.storage.loading:_recover",
                "if end is not None and (clean or end < recovery_point) and segment.adopt(end):",
                "if end is not None and (clean or end <= recovery_point) and segment.adopt(end):",
            ),
        ),
        "after a loss of power the last segment that was closed is taken with indexes that were not on the disk",
        ("lost-write", "unseen", "broken-files", "wrong-lookup"),
        1000,
        "",
    ),
    Defect(
        "epochs-past-the-end-stay",
        (
            Edit(
                "tagwire.broker.storage.loading:_leader_epochs",
                "for known, start in epochs if start < end_offset)",
                "for known, start in epochs)",
            ),
        ),
        "leader epochs of which a crash has taken every record are still told",
        ("epoch-end-wrong", "broken-files"),
        300,
        "",
    ),
    Defect(
        "compacts-what-is-open",
        (
            Edit(
                "tagwire.broker.storage.compaction:dirt_of",
                "min(closed[-1].next_offset, log.stable_offset) if closed else start",
                "closed[-1].next_offset if closed else start",
            ),
        ),
        "compaction does not stop before a transaction that is open: an aborted record takes the place of a committed",
        ("lost-write", "compaction-lost-last-value"),
        300,
        "",
    ),
    Defect(
        "null-for-a-key-that-is-new",
        (
            Edit(
                f"{_CLEANING}._stays",
                "return record.offset >= self.last_of.get(record.key) and (record.value is not None or not is_over)",
                "return record.offset > self.last_of.get(record.key) or (record.value is not None and not is_over)",
            ),
        ),
        "compaction keeps older records of a key, and takes the record that deletes it",
        ("compaction-brought-back", "compaction-lost-last-value", "lost-write"),
        100,
        "",
    ),
    Defect(
        "headers-lost-by-compaction",
        (
            Edit(
                "tagwire.records.writer:rewrite",
                "    rows = list(records)\n",
                "    rows = [row.replace(headers=()) for row in records]\n",
            ),
        ),
        "records lose their headers where compaction writes their batch anew",
        ("never-sent", "lost-write"),
        50,
        "",
    ),
    Defect(
        "times-move-with-the-horizon",
        (
            Edit(
                "tagwire.records.writer:rewrite",
                "kernel.encode(rows, deltas, base_timestamp, as_read=True)",
                "kernel.encode(rows, deltas, batch.base_timestamp, as_read=True)",
            ),
        ),
        "where compaction writes down until when a tombstone stays, the records of its batch get other times",
        ("never-sent", "inconsistent-offsets"),
        50,
        "",
    ),
    Defect(
        "leader-that-joins-again-is-sent-home",
        (
            Edit(
                f"{_GROUP}._join_again",
                "(self.state is State.STABLE and not is_leader)",
                "self.state is State.STABLE",
            ),
        ),
        "a leader that joins again for a topic that has grown begins no rebalance",
        ("not-refused", "unowned", "group-stalled", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "silent-heartbeats",
        (
            Edit(
                f"{_GROUP}.heartbeat",
                "        member.heard_of(now_ms)\n",
                "",
            ),
        ),
        "a classic member is given up when its session is over, however often it says that it is there",
        ("unowned", "group-stalled", "two-owners", "fenced-by-nobody"),
        50,
        "",
    ),
    Defect(
        "static-member-comes-back-to-nothing",
        (
            Edit(
                f"{_GROUP}._rename",
                "        member.take(joining)\n",
                '        member.take(joining)\n        member.assignment = b""\n',
            ),
        ),
        "a static member that comes back within its session has nothing, and nobody else has what was its own",
        ("not-refused", "unowned", "group-stalled", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "one-group-of-a-transaction",
        (
            Edit(
                "tagwire.broker.groups.offset_commits:OffsetCommits._prepare",
                "self._in_transactions.setdefault(producer_id, set()).add(group_id)",
                "self._in_transactions[producer_id] = {group_id}",
            ),
        ),
        "of a transaction that commits offsets of two groups only one's count",
        ("group-offset-lost", "group-offset-back", "not-refused"),
        50,
        "",
    ),
    Defect(
        "who-committed-is-remembered",
        (
            Edit(
                "tagwire.broker.groups.offset_commits:OffsetCommits.end_transaction",
                "self._in_transactions.pop(producer_id, ())",
                "self._in_transactions.get(producer_id, ())",
            ),
        ),
        "of each producer that commits offsets in transactions it is remembered for ever for which groups",
        ("leaked-memory",),
        50,
        "",
    ),
    Defect(
        "offsets-outlive-their-topic",
        (
            Edit(
                "tagwire.broker.groups.offset_commits:OffsetCommits.forget_topics",
                "await self._forget_offsets(lambda partition: partition[0] in topics)",
                "await self._forget_offsets(lambda partition: partition[0] in topics and partition[1] > 0)",
            ),
        ),
        "a topic that is made anew has the offsets that groups committed of the one before",
        ("old-topic-offset", "group-offset-back", "group-skip", "group-unseen", "group-offset-unknown"),
        100,
        "",
    ),
    Defect(
        "marked-in-the-transaction-before",
        (
            Edit(
                f"{_TRANSACTIONS}._mark_all",
                "        del self._marked[transaction.transactional_id]\n",
                "",
            ),
        ),
        "a partition that was marked in one transaction is left without a marker in the next one of its id",
        ("stuck-transaction", "stable-stands-still", "partial-transaction"),
        50,
        "",
    ),
    Defect(
        "any-end-is-the-end",
        (
            Edit(
                "tagwire.broker.transactions.transaction:Transaction.ended",
                "if self.state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT):",
                "if self.is_complete:",
            ),
        ),
        "who commits a transaction that was aborted meanwhile is told that it is committed",
        ("lost-write", "not-refused", "partial-transaction"),
        100,
        "",
    ),
    Defect(
        "any-partition-is-of-the-transaction",
        (
            Edit(
                "tagwire.broker.transactions.transaction:Transaction.check_open",
                "if self.state is not State.ONGOING or partition not in self.partitions:",
                "if self.state is not State.ONGOING:",
            ),
        ),
        "a transaction takes records in partitions that were not added to it, where nobody ends it",
        ("stuck-transaction", "not-refused"),
        100,
        "",
    ),
    Defect(
        "connections-are-counted-for-ever",
        (Edit("tagwire.broker.network.admission:Admission.leave", "        self.open -= 1\n", ""),),
        "a broker counts connections and never off: when so many have been there, it lets in nobody",
        ("leaked-memory", "unavailable"),
        50,
        "",
    ),
    Defect(
        "sessions-are-counted-for-ever",
        (
            Edit(
                "tagwire.broker.fetch_sessions:FetchSessions._remove",
                "self._partitions -= len(session.partitions)",
                "self._partitions -= 0",
            ),
        ),
        "what ended fetch sessions remembered is never room again: at last there are none",
        ("leaked-memory",),
        50,
        "",
    ),
    Defect(
        "bytes-are-counted-for-ever",
        (
            Edit(
                "tagwire.broker.network.memory_budget:MemoryBudget.leave",
                "        self.hold(holder, 0, 0)\n",
                "        self._held.pop(holder, None)\n",
            ),
        ),
        "what a connection held that is gone is never room again: at last all others are closed",
        ("leaked-memory",),
        50,
        "",
    ),
    Defect(
        "offsets-are-counted-for-ever",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets._put",
                "        self._drop(into, offsets)\n",
                "",
            ),
        ),
        "each commit takes room, though it takes the place of the one before: at last all are refused",
        ("leaked-memory",),
        50,
        "",
    ),
)

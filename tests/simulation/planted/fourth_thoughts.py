"""Defects of the broker that were written by somebody who had not read the judge, with the others before him."""

from __future__ import annotations

from .defect import Defect, Edit

_LOG = "tagwire.broker.storage.log:PartitionLog"
_PRODUCERS = "tagwire.broker.storage.producer_state"
_CLASSIC = "tagwire.broker.groups.classic_group:ClassicGroup"
_CONSUMER = "tagwire.broker.groups.consumer_group:ConsumerGroup"
_COORDINATOR = "tagwire.broker.transactions.coordinator:Transactions"

FOURTH_THOUGHTS = (
    Defect(
        "undone-from-the-first-on",
        (Edit(f"{_PRODUCERS}:ProducerState.undo", "in reversed(self._before):", "in self._before:"),),
        "of two batches of a producer whose write failed the first counts as stored, and is acknowledged the next time",
        ("lost-write", "producer-forgotten", "sequence-out-of-order", "nonmonotonic-send", "not-refused"),
        300,
        "",
    ),
    Defect(
        "aborted-by-a-later-epoch-is-not-aborted",
        (
            Edit(
                f"{_PRODUCERS}:ProducerState.take",
                "start = known.transaction_start if known else None",
                "start = None",
            ),
        ),
        "a transaction that is aborted for its age, or by the next one of its id, is not told as aborted",
        ("aborted-read", "abort-untold"),
        50,
        "",
    ),
    Defect(
        "nothing-begins-at-zero",
        (
            Edit(
                f"{_PRODUCERS}:_producer",
                "if entry.current_txn_first_offset >= 0 else None",
                "if entry.current_txn_first_offset > 0 else None",
            ),
        ),
        "a transaction that begins with a partition is not open any more when the broker was started again",
        ("uncommitted-read", "aborted-read", "abort-untold", "stable-passes-open", "not-refused"),
        100,
        "",
    ),
    Defect(
        "closed-and-not-written-down",
        (
            Edit(
                f"{_LOG}._roll",
                "        self._new_names = True\n        self._unsynced[active.base_offset] = active\n",
                "        self._new_names = True\n",
            ),
        ),
        "a segment that was on the disk when it was closed is left without its indexes",
        ("broken-files", "wrong-lookup", "leaked-descriptors"),
        50,
        "",
    ),
    Defect(
        "last-of-the-newest",
        (
            Edit(
                "tagwire.broker.storage.segment:LogSegment._note",
                "if max_timestamp > self.newest[0]:",
                "if max_timestamp >= self.newest[0]:",
            ),
        ),
        "of several batches that share the greatest timestamp a time is found in the last one",
        ("wrong-lookup", "broken-files", "not-refused"),
        100,
        "",
    ),
    Defect(
        "compacts-one-segment-too-many",
        (
            Edit(
                "tagwire.broker.storage.compaction:dirt_of",
                "end = min(end, segment.base_offset)",
                "end = min(end, segment.next_offset)",
            ),
        ),
        "compaction takes records that are younger than min.compaction.lag.ms",
        ("compaction-lost-last-value", "removed-too-much", "not-refused"),
        300,
        "",
    ),
    Defect(
        "one-record-is-not-aborted",
        (
            Edit(
                "tagwire.broker.storage.cleaned_transactions:CleanedTransactions.may_go",
                "first_offset <= batch.last_offset:",
                "first_offset < batch.last_offset:",
            ),
        ),
        "compaction takes an aborted record for the last of its key, where it is alone in its transaction",
        ("compaction-lost-last-value", "compaction-brought-back", "aborted-read", "transaction-forgotten"),
        100,
        "",
    ),
    Defect(
        "recovery-begins-no-epoch",
        (
            Edit(
                "tagwire.broker.storage.loading:_leader_epochs",
                "epochs = [*((known, start) for known, start in epochs if start < end_offset), (epoch, end_offset)]",
                "epochs = [(known, start) for known, start in epochs if start < end_offset] or [(epoch, end_offset)]",
            ),
        ),
        "who has read what a loss of power took is not told that the log is another one: it goes on, and misses some",
        ("poll-skip", "epoch-end-wrong", "not-refused", "inconsistent-offsets"),
        300,
        "",
    ),
    Defect(
        "recovery-point-runs-ahead",
        (
            Edit(
                f"{_LOG}.publish",
                "            self._publish()\n",
                "            self._publish()\n            self.recovery_point = self._visible.offset\n",
            ),
        ),
        "what was written and not synced is taken for whole after a loss of power",
        ("broken-files", "lost-write", "unavailable", "producer-forgotten"),
        300,
        "",
    ),
    Defect(
        "replacement-is-not-synced",
        (Edit("tagwire.broker.storage.compaction:Compaction._finish", "        new.sync()\n", ""),),
        "what compaction has written anew is not on the disk when it takes the place of what was",
        ("lost-write", "compaction-lost-last-value", "broken-files", "unavailable", "group-offset-lost"),
        300,
        "",
    ),
    Defect(
        "start-is-remembered-last",
        (
            Edit(
                f"{_LOG}.delete_before",
                "            if deletion.start is not None:\n"
                "                remember(deletion.start)\n"
                "            return deletion.carry_out()\n",
                "            gone = deletion.carry_out()\n"
                "            if deletion.start is not None:\n"
                "                remember(deletion.start)\n"
                "            return gone\n",
            ),
        ),
        "where a log starts is told before it is on the disk: after a crash it starts earlier",
        ("log-start-back", "deleted-records-read", "brought-back"),
        300,
        "",
    ),
    Defect(
        "fence-may-be-forgotten",
        (
            Edit(
                "tagwire.broker.transactions.states:TransactionStates.store",
                "decides=not following.is_complete)",
                "decides=bool(following.partitions))",
            ),
        ),
        "after a loss of power a producer gets the epoch that one before it has, where fsync is interval",
        ("owner-forgotten", "fenced-write", "fenced-by-nobody", "lost-write", "sequence-out-of-order", "failed-write"),
        300,
        "tests/broker/transactions/test_transactions_without_power.py::"
        "test_no_epoch_is_given_to_two_producers_with_a_loss_of_power_between[7]",
    ),
    Defect(
        "time-of-the-first-process",
        (
            Edit(
                f"{_COORDINATOR}._initialize",
                "transaction.initialized(next_id, next_epoch, timeout_ms, self._clock(), owner)",
                "transaction.initialized(next_id, next_epoch, transaction.timeout_ms, self._clock(), owner)",
            ),
        ),
        "who takes a transactional id over has the time that the one before had asked for",
        ("not-refused", "fenced-by-nobody", "stuck-transaction", "failed-for-nothing"),
        100,
        "",
    ),
    Defect(
        "committed-into-what-is-gone",
        (
            Edit(
                "tagwire.broker.groups.offset_commits:OffsetCommits._commit",
                "growth = self.offsets(group_id).growth_of(offsets)",
                "entry, growth = self._groups.get(group_id), self.offsets(group_id).growth_of(offsets)",
            ),
            Edit(
                "tagwire.broker.groups.offset_commits:OffsetCommits._commit",
                "        entry = self._entry(group_id)\n",
                "        entry = entry or self._entry(group_id)\n",
            ),
        ),
        "what a group commits while the last of its other offsets goes with a topic is forgotten until a restart",
        ("group-offset-lost", "group-offset-back", "old-topic-offset", "not-refused"),
        300,
        "",
    ),
    Defect(
        "waits-and-is-given-up",
        (
            Edit(
                f"{_CONSUMER}._expect_revocation",
                "is MemberState.UNREVOKED_PARTITIONS",
                "is MemberState.UNRELEASED_PARTITIONS",
            ),
        ),
        "of two members the one that waits for a partition is given up, and not the one that keeps it",
        ("lost-for-nothing", "unowned", "not-refused", "group-stalled"),
        100,
        "",
    ),
    Defect(
        "syncs-while-others-join",
        (
            Edit(
                f"{_CLASSIC}.sync",
                "            if self.state is State.PREPARING:\n"
                "                raise KafkaError(Error.REBALANCE_IN_PROGRESS)\n",
                "",
            ),
        ),
        "who asks for its assignment when the next rebalance has begun waits for it, and the rebalance for him",
        ("not-refused", "unowned", "group-stalled", "lost-for-nothing", "unanswered"),
        100,
        "",
    ),
    Defect(
        "no-time-after-a-restart",
        (Edit(f"{_CLASSIC}.restore", "now_ms + member.session_timeout_ms", "now_ms"),),
        "the members of a group are given up as soon as its broker is back",
        ("lost-for-nothing", "not-refused", "given-again"),
        100,
        "",
    ),
    Defect(
        "aborted-offsets-count-after-a-restart",
        (
            Edit(
                "tagwire.broker.groups.coordinator:Groups._take_batch",
                "committed=origin.marker.commit",
                "committed=True",
            ),
        ),
        "offsets of a transaction that was aborted are a group's when the broker was started again",
        ("aborted-offset", "made-nothing", "group-offset-back", "group-offset-unknown", "not-refused"),
        50,
        "",
    ),
    Defect(
        "lost-response-is-not-given-again",
        (
            Edit(
                f"{_CONSUMER}.heartbeat",
                "updated.current.assigned if is_new or beat.is_full else None",
                "updated.current.assigned if is_new else None",
            ),
        ),
        "a member of KIP-848 whose response was lost is never told what it was given",
        ("assignment-ignored", "unowned", "group-stalled", "not-refused"),
        100,
        "",
    ),
    Defect(
        "first-come-is-always-first",
        (
            Edit(
                "tagwire.broker.fetch_sessions:_Incremental.respond",
                "session.partitions[key] = session.partitions.pop(key)",
                "session.partitions[key] = partition",
            ),
        ),
        "in a fetch session a partition that always has records leaves the others none",
        ("group-stalled", "group-unseen", "not-refused"),
        300,
        "",
    ),
)

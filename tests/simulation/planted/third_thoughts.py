"""Defects that were written by somebody who had read neither the judge nor the other defects."""

from __future__ import annotations

from .defect import Defect, Edit

_CLASSIC = "tagwire.broker.groups.classic_group:ClassicGroup"
_CONSUMER = "tagwire.broker.groups.consumer_group:ConsumerGroup"

THIRD_THOUGHTS = (
    Defect(
        "epoch-begins-before-what-is-written",
        (
            Edit(
                "tagwire.broker.storage.log:PartitionLog.begin_epoch",
                "(begun, self._active.next_offset)",
                "(begun, self._visible.offset)",
            ),
        ),
        "a leader epoch is said to begin where readers may read to, and batches of the one before stand behind that",
        ("epoch-end-wrong",),
        100,
        "tests/broker/storage/test_recovery.py::"
        "test_a_leader_epoch_begins_behind_what_is_written_and_not_on_the_disk_yet",
    ),
    Defect(
        "time-of-what-is-open",
        (
            Edit(
                "tagwire.broker.handlers.list_offsets:_visible",
                "found[1] >= end",
                "found[1] > end",
            ),
        ),
        "a reader of committed records who looks for a time is sent to the first record of an open transaction",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "deleted-offsets-are-still-to-come",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets.delete",
                "            self._drop(pending, gone)\n"
                "            for partition in gone:\n"
                "                self._turns[producer_id].pop(partition, None)\n",
                "",
            ),
        ),
        "offsets of a topic that is deleted come back with the transaction that had them",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "leads-who-has-not-joined",
        (
            Edit(
                f"{_CLASSIC}._begin_generation",
                "if self.leader not in self.members or self.members[self.leader].on_join is None:",
                "if self.leader not in self.members:",
            ),
        ),
        "a static member that is away goes on leading its group, and nobody assigns",
        ("not-refused", "unowned", "group-stalled"),
        100,
        "",
    ),
    Defect(
        "new-subscription-is-the-old-one",
        (
            Edit(
                f"{_CLASSIC}._join_again",
                "same = member.protocols == joining.protocols",
                "same = [name for name, _ in member.protocols] == [name for name, _ in joining.protocols]",
            ),
        ),
        "a member that joins again with another subscription is told what it was told before",
        ("not-refused", "unowned", "group-stalled"),
        100,
        "",
    ),
    Defect(
        "epoch-before-whatever-is-owned",
        (
            Edit(
                f"{_CONSUMER}._check_epoch",
                "if is_before and beat.owned is not None and beat.owned <= current.assigned:",
                "if is_before and beat.owned is not None:",
            ),
        ),
        "a member that speaks of the epoch before goes on with partitions that are not its own any more",
        ("not-refused", "two-owners"),
        100,
        "",
    ),
    Defect(
        "away-and-not-let-go",
        (
            Edit(
                f"{_CONSUMER}._leave",
                "away = replace(member.current, epoch=LEAVING_STATIC, revoking=NO_PARTITIONS)",
                "away = replace(member.current, epoch=LEAVING_STATIC)",
            ),
        ),
        "what a static member was to give up when it went away stays its own until its session is over",
        ("not-refused", "unowned"),
        100,
        "",
    ),
    Defect(
        "each-partition-gives-more-time",
        (
            Edit(
                "tagwire.broker.transactions.transaction:Transaction.is_overdue",
                "now_ms >= self.started_ms + self.timeout_ms",
                "now_ms >= self.updated_ms + self.timeout_ms",
            ),
        ),
        "a transaction that goes on adding partitions is never over its time",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "unsent-once-is-never-sent",
        (
            Edit(
                "tagwire.client.producing.sender:Sender._take_responses",
                "batch.may_be_appended |= request.pending.is_written",
                "batch.may_be_appended = request.pending.is_written",
            ),
        ),
        "a batch that may have been appended is thought new when it could not be sent the next time",
        ("duplicate", "nonmonotonic-send"),
        3000,
        "tests/client/test_producer_idempotence.py::test_a_batch_may_be_appended_still_when_it_could_not_be_sent_again",
    ),
    Defect(
        "session-from-the-response",
        (
            Edit(
                "tagwire.client.consuming.classic_membership:ClassicMembership._send_heartbeat",
                "self._heartbeat.answered(sent_at)",
                "self._heartbeat.answered(self._network.now())",
            ),
        ),
        "a member counts its session from the response to a heartbeat, and the coordinator from the heartbeat",
        ("two-owners", "fenced-commit", "group-offset-back"),
        100,
        "tests/client/test_classic_membership.py::"
        "test_a_session_is_counted_from_the_heartbeat_and_not_from_its_late_response",
    ),
    Defect(
        "what-was-said-is-not-said-again",
        (
            Edit(
                "tagwire.client.consuming.consumer_membership:ConsumerMembership._acknowledge_if_taken",
                "            self._fields.owned_unsaid()\n",
                "",
            ),
            Edit(
                "tagwire.client.consuming.consumer_membership:ConsumerMembership._take_target",
                "        self._owned = resolved\n        await self._handler.assign(assigned - owned)\n",
                "        await self._handler.assign(assigned - owned)\n        self._owned = resolved\n",
            ),
        ),
        "a member does not say that it has given up what was assigned and taken back before its user polled",
        ("lost-for-nothing", "unowned", "group-stalled"),
        500,
        "tests/client/test_consumer_membership.py::test_what_was_assigned_and_taken_back_before_the_user_polled_is_said_to_be_given_up",
    ),
    Defect(
        "takes-what-a-lost-membership-was-given",
        (
            Edit(
                "tagwire.client.consuming.consumer_membership:ConsumerMembership._take_target",
                "        if joined is not self._joined:\n            return True  # of another membership\n",
                "",
            ),
        ),
        "a member that was thrown out while it gave up partitions takes those that it was to get instead",
        ("two-owners", "assignment-ignored"),
        100,
        "",
    ),
    Defect(
        "aborted-ids-are-used-again",
        (
            Edit(
                "tagwire.spark.sink.task_transactions:_is_committed",
                "return found[transactional_id].state in _COMMITTED",
                'return found[transactional_id].state != "Ongoing"',
            ),
        ),
        "a task writes under an id whose last transaction was aborted, and that an older driver may abort once more",
        ("sink-row-lost", "sink-row-twice"),
        2000,
        "tests/spark/test_exactly_once.py::"
        "TestEmbedded::test_an_id_is_used_again_only_when_its_batch_is_done_and_by_itself",
    ),
    Defect(
        "decides-for-as-long-as-tasks-may-write",
        (
            Edit(
                "tagwire.spark.sink.driver:_decision_timeout",
                "timeout_ms / 1000 / 4",
                "timeout_ms / 1000",
            ),
        ),
        "a driver that sleeps commits a decision when the transactions that it lists are over their time",
        ("decided-late", "sink-row-lost"),
        100,
        "tests/spark/test_exactly_once_requests.py::"
        "test_a_decision_is_over_before_the_transactions_that_it_lists[6000]",
    ),
    Defect(
        "a-new-topic-begins-where-the-old-one-did",
        (
            Edit(
                "tagwire.broker.storage.data_directory:DataDirectory.forget_offsets",
                "(self.recovery_points, self.start_offsets, self.cleaned, self.gaps)",
                "(self.recovery_points, self.cleaned, self.gaps)",
            ),
        ),
        "records of a topic that was deleted and made anew are gone after a restart, up to where the old one began",
        ("not-refused", "lost-write"),
        100,
        "",
    ),
    Defect(
        "committed-without-its-epoch",
        (
            Edit(
                "tagwire.broker.handlers.offset_fetch:_result",
                "        result.committed_leader_epoch = found.leader_epoch\n",
                "",
            ),
        ),
        "who fetches a committed offset is not told of which leader epoch the record before it is",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "the-last-one-decides-for-all",
        (
            Edit(
                "tagwire.broker.group_commit:GroupCommit._run",
                "sync = self._sync or any(wanted for _, wanted, _ in group)",
                "sync = self._sync or group[-1][1]",
            ),
        ),
        "what other logs follow from is not on the disk where something behind it in its group need not be",
        ("partial-transaction", "lost-write", "aborted-offset"),
        3000,
        "tests/broker/test_group_commit.py::"
        "test_a_batch_that_waits_for_the_disk_does_so_wherever_it_stands_in_its_group[waits1-1]",
    ),
    Defect(
        "deletions-stay-for-ever",
        (
            Edit(
                "tagwire.broker.storage.cleaning:Cleaning.keep",
                "if waits and horizon is None:",
                "if waits:",
            ),
        ),
        "each compaction gives a record that deletes its whole time anew",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "later-markers-have-records",
        (
            Edit(
                "tagwire.broker.storage.cleaned_transactions:CleanedTransactions._ends",
                "        self._seen.discard(batch.producer_id)\n",
                "",
            ),
        ),
        "compaction keeps every marker of a producer that still has records in any transaction",
        ("not-refused",),
        100,
        "",
    ),
    Defect(
        "gives-what-was-just-written",
        (
            Edit(
                "tagwire.broker.handlers.fetch:_just_written",
                "or wanted.fetch_offset != end.offset:",
                "or wanted.fetch_offset > end.offset:",
            ),
        ),
        "a reader that waits for more than there is gets what comes, and not what was there",
        ("not-refused", "poll-skip"),
        100,
        "",
    ),
    Defect(
        "just-written-is-committed",
        (
            Edit(
                "tagwire.broker.storage.readable_log:ReadableLog.fetch_since",
                "if committed and (view.stable < now.offset or any(one.aborted for one in view.segments)):",
                "if committed and any(one.aborted for one in view.segments):",
            ),
        ),
        "a reader of committed records that waits is given what has just been written, be it committed or not",
        ("not-refused", "uncommitted-read", "aborted-read"),
        100,
        "",
    ),
    Defect(
        "decides-in-the-last-half",
        (
            Edit(
                "tagwire.spark.sink.driver:Driver._check",
                "if age > allowed / 2:",
                "if age > allowed:",
            ),
        ),
        "a micro-batch is decided whose transactions are about to be over their time",
        ("decided-late", "sink-row-lost"),
        100,
        "",
    ),
    Defect(
        "the-end-counts-not-the-writing",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets._overtake",
                "if pending.get(partition, turn) < turn:",
                "if pending.get(partition, turn) > turn:",
            ),
        ),
        "what a transaction has committed for a group takes the place of what the group has committed since",
        ("not-refused",),
        100,
        "tests/broker/groups/test_offsets.py"
        "::test_a_commit_that_was_written_after_a_transactions_holds_when_that_commits",
    ),
)

"""Defects of client and sink, written as those of `fourth_thoughts`."""

from __future__ import annotations

from .defect import Defect, Edit

_TRANSACTIONS = "tagwire.client.producing.transaction_manager:TransactionManager"
_WORK = "tagwire.client.consuming.consumer_work:ConsumerWork"
_DRIVER = "tagwire.spark.sink.driver:Driver"

FOURTH_THOUGHTS_OF_CLIENTS = (
    Defect(
        "epoch-stays-when-a-batch-is-lost",
        (Edit(f"{_TRANSACTIONS}.handle_failed_batch", "        self._epoch_bump_required = True\n", ""),),
        "after a transaction of which a batch was given up the next one counts from 0 in the same epoch",
        ("lost-write", "duplicate", "nonmonotonic-send", "partial-transaction", "failed-for-nothing"),
        300,
        "tests/client/test_transaction_versions.py::"
        "test_what_was_not_even_sent_with_version_2_has_the_numbers_go_on_from_version_1",
    ),
    Defect(
        "half-of-it-is-flushed",
        (
            Edit(
                "tagwire.client.producing.record_accumulator:RecordAccumulator.await_completion",
                "if all(leaf.is_done",
                "if any(leaf.is_done",
            ),
        ),
        "who flushes does not wait for the second half of a batch that was too large",
        ("lost-write", "partial-transaction", "unanswered", "nonmonotonic-send", "not-refused"),
        100,
        "",
    ),
    Defect(
        "interrupted-and-passed",
        (
            Edit(
                f"{_WORK}.rewind",
                "one.consumed or one.fetch_position.began",
                "one.fetch_position.given",
            ),
        ),
        "what a call took that was interrupted, or that changes from records to batches, is never given",
        ("poll-skip", "group-skip", "group-unseen", "int-poll-skip"),
        100,
        "tests/client/test_consumer.py::test_what_an_interrupted_call_took_is_given_by_the_next_one[poll]",
    ),
    Defect(
        "owned-when-it-was-asked-for",
        (
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits.commit",
                "            retry = self._network.retry(deadline)\n",
                "            retry = self._network.retry(deadline)\n            offsets = pending.owned()\n",
            ),
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits.commit",
                "                offsets = pending.owned()\n",
                "",
            ),
        ),
        "a commit that is refused and sent again goes on with partitions that were given up meanwhile",
        ("fenced-commit", "group-offset-back"),
        2000,
        "tests/client/test_commits_in_memory.py::"
        "test_a_commit_that_waited_while_its_member_was_lost_does_not_take_the_next_owners_offset_back[KIP-848]",
    ),
    Defect(
        "latest-is-past-what-is-open",
        (
            Edit(
                f"{_WORK}._resolved",
                "await resolved(self._network, wanted, fetch.isolation, fetch.group)",
                'await resolved(self._network, wanted, "read_uncommitted", fetch.group)',
            ),
        ),
        "a reader of committed records that seeks to the end misses a transaction that is open then",
        ("end-passes-open", "poll-skip", "seek-ignored", "not-refused"),
        100,
        "",
    ),
    Defect(
        "uneven-members-are-given-at-once",
        (
            Edit(
                "tagwire.client.consuming.assignors.cooperative_sticky_assignor:CooperativeStickyAssignor.assign",
                "transferring = _transferring(subscriptions, sticky.partitions)",
                "transferring = {}",
            ),
        ),
        "where members want different topics a partition is given to its next member before the last has let it go",
        ("two-owners", "fenced-commit"),
        300,
        "tests/client/test_assignors.py::test_in_a_cooperative_rebalance_nothing_is_given_that_another_still_has",
    ),
    Defect(
        "reads-before-it-fences",
        (
            Edit(
                f"{_DRIVER}.prepare",
                "                producer.init_transactions()\n"
                "                decided = last_decisions("
                "client, self._exactly_once_id, time.monotonic() + PATIENCE)\n",
                "                decided = last_decisions("
                "client, self._exactly_once_id, time.monotonic() + PATIENCE)\n"
                "                producer.init_transactions()\n",
            ),
        ),
        "what the driver before decides between reading and fencing is aborted as nobody's",
        ("sink-row-lost", "sink-row-twice"),
        300,
        "tests/spark/test_exactly_once.py::TestEmbedded::test_what_was_decided_is_read_when_nobody_can_decide_any_more",
    ),
)

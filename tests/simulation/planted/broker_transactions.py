"""Defects of the transaction coordinator."""

from __future__ import annotations

from .defect import Defect, Edit

_COORDINATOR = "tagwire.broker.transactions.coordinator:Transactions"
_TRANSACTION = "tagwire.broker.transactions.transaction:Transaction"

TRANSACTIONS = (
    Defect(
        "fence-forgotten",
        (
            Edit(
                f"{_TRANSACTION}.check_producer",
                "if epoch != self.epoch:",
                "if epoch > self.epoch:",
            ),
        ),
        "a producer whose place another one took may still add to its transactions, and end them",
        ("G0", "partial-transaction", "aborted-read", "lost-write"),
        300,
        "",
    ),
    Defect(
        "epoch-not-bumped",
        (
            Edit(
                f"{_COORDINATOR}._initialize",
                "next_id, next_epoch = transaction.producer_id, transaction.epoch + 1",
                "next_id, next_epoch = transaction.producer_id, transaction.epoch",
            ),
        ),
        "a producer that takes a transactional id over has the epoch of the one before",
        ("G0", "partial-transaction", "lost-write", "duplicate"),
        300,
        "",
    ),
    Defect(
        "ends-in-its-own-epoch",
        (
            Edit(
                f"{_TRANSACTION}.ended_with_epoch",
                "epoch=epoch + 1,",
                "epoch=epoch,",
            ),
        ),
        "a transaction of version 2 ends in its own epoch: what is late is of the next one",
        ("not-refused", "aborted-read", "partial-transaction"),
        50,
        "tests/broker/transactions/test_transaction_version_2.py::test_what_comes_late_is_of_no_later_transaction",
    ),
    Defect(
        "an-end-that-is-sent-again-is-none",
        (
            Edit(
                f"{_TRANSACTION}._was_ended_by",
                "if not self.is_complete or self.transaction_version == 1",
                "if self.is_complete or self.transaction_version == 1",
            ),
        ),
        "whoever did not hear that its transaction of version 2 has ended is fenced by that",
        ("not-refused", "fenced-by-nobody", "failed-for-nothing"),
        50,
        "tests/broker/transactions/test_transaction_version_2.py::"
        "test_an_end_that_is_sent_again_is_answered_as_the_first_after_a_restart_too",
    ),
    Defect(
        "a-decided-commit-hangs",
        (
            Edit(
                "tagwire.broker.transactions.hanging:_is_known",
                "if owner.is_ending and owner.transaction_version > 1:",
                "if owner.state is State.PREPARE_ABORT and owner.transaction_version > 1:",
            ),
        ),
        "a commit of version 2 that was decided when the broker stopped is taken for what hangs, and aborted",
        ("partial-transaction", "lost-write"),
        1000,
        "tests/broker/transactions/test_transaction_requests.py::"
        "test_a_transaction_whose_outcome_was_decided_is_brought_to_it_after_a_crash",
    ),
    Defect(
        "adds-beside-what-goes-on",
        (
            Edit(
                f"{_COORDINATOR}.add_and_append",
                "if is_added and not self._serial.is_busy(transactional_id):",
                "if True:",
            ),
        ),
        "what is written in a transaction of version 2 is not added to it, and refused",
        ("stuck-transaction", "failed-for-nothing", "not-refused", "unanswered"),
        20,
        "tests/broker/transactions/test_transaction_version_2.py",
    ),
    Defect(
        "timed-out-not-fenced",
        (
            Edit(
                f"{_TRANSACTION}.fenced",
                "epoch=self.epoch + 1",
                "epoch=self.epoch",
            ),
        ),
        "a producer whose transaction was aborted for its age goes on in the same epoch",
        ("G0", "partial-transaction", "lost-write"),
        500,
        "",
    ),
    Defect(
        "added-in-memory-first",
        (
            Edit(
                "tagwire.broker.transactions.states:TransactionStates.store",
                "            record = stored.transaction_record(following, wall_ms())",
                "            self._adopt(name, following)\n"
                "            record = stored.transaction_record(following, wall_ms())",
            ),
        ),
        "a step counts before it is stored, also where storing it fails: after a restart nobody ends what it began",
        ("uncommitted-read", "stuck-transaction", "partial-transaction"),
        1000,
        "",
    ),
    Defect(
        "partitions-of-a-topic-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.transactions.stored:read_record",
                "frozenset(TopicPartition(topic.topic, index) for topic in topics for index in topic.partition_ids)",
                "frozenset({t.topic: TopicPartition(t.topic, i) for t in topics for i in t.partition_ids}.values())",
            ),
        ),
        "after a restart only one partition of each topic gets the marker of a transaction that was not ended",
        ("stuck-transaction", "stable-stands-still"),
        300,
        "",
    ),
    Defect(
        "marked-before-it-is-written",
        (
            Edit(
                f"{_COORDINATOR}._mark_all",
                "            try:\n                await self.mark(",
                "            try:\n                marked.add(partition)\n                await self.mark(",
            ),
        ),
        "a partition whose marker could not be written is left out when it is tried again",
        ("stuck-transaction", "stable-stands-still"),
        500,
        "",
    ),
    Defect(
        "ending-forgotten-at-start",
        (
            Edit(
                f"{_COORDINATOR}.start",
                "if transaction.is_ending:",
                "if transaction.commits and not transaction.partitions:",
            ),
            Edit(
                f"{_COORDINATOR}.expire",
                "elif transaction.is_ending:",
                "elif transaction.is_ending and name in self._marked:",
            ),
        ),
        "a transaction whose outcome was decided before a crash is not brought to its end",
        ("stuck-transaction", "stable-stands-still"),
        300,
        "",
    ),
    Defect(
        "never-too-old",
        (
            Edit(
                f"{_TRANSACTION}.is_overdue",
                "now_ms >= self.started_ms + self.timeout_ms",
                "self.updated_ms <= now_ms < self.started_ms",
            ),
        ),
        "a transaction that its producer left open stays open",
        ("stuck-transaction", "stable-stands-still"),
        50,
        "",
    ),
    Defect(
        "producer-ids-given-twice",
        (
            Edit(
                "tagwire.broker.producer_ids:ProducerIds._take",
                "await asyncio.get_running_loop().run_in_executor(self._executor, self._save, self._end + BLOCK)",
                "await asyncio.get_running_loop().run_in_executor(self._executor, self._save, self._end)",
            ),
        ),
        "after a restart producers get ids that others have: their batches are taken for the others'",
        ("lost-write", "duplicate", "unavailable"),
        200,
        "",
    ),
    Defect(
        "taken-over-without-an-abort",
        (
            Edit(
                f"{_COORDINATOR}._initialize",
                "if transaction.state is State.ONGOING:",
                "if transaction.state is State.ONGOING and owner is not None:",
            ),
        ),
        "who takes a transactional id over leaves the transaction open that was",
        ("stuck-transaction", "stable-stands-still", "partial-transaction"),
        100,
        "",
    ),
)

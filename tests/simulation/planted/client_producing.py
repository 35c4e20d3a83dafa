"""Defects of the producer."""

from __future__ import annotations

from .defect import Defect, Edit

_SENDER = "tagwire.client.producing.sender:Sender"
_NUMBERS = "tagwire.client.producing.sequence_numbers:SequenceNumbers"

PRODUCING = (
    Defect(
        "renumbers-what-may-be-stored",
        (
            Edit(
                f"{_NUMBERS}.maybe_reset",
                "if (self.must_reset or is_other) and not any(batch.may_be_appended for batch in queued):",
                "if self.must_reset or is_other:",
            ),
        ),
        "a batch that may be stored gets another sequence number, and is stored twice",
        ("duplicate",),
        200,
        "tests/client/test_producer_idempotence.py::test_what_was_in_flight_behind_a_batch_that_is_failed_is_not_written_twice",
    ),
    Defect(
        "written-is-not-stored",
        (
            Edit(
                f"{_SENDER}._take_responses",
                "batch.may_be_appended |= request.pending.is_written",
                "batch.may_be_appended = False",
            ),
        ),
        "a batch whose response was lost counts as one that was never stored",
        ("duplicate",),
        200,
        "tests/client/test_producer_idempotence.py::test_what_was_in_flight_behind_a_batch_that_is_failed_is_not_written_twice",
    ),
    Defect(
        "splits-what-may-be-stored",
        (
            Edit(
                "tagwire.client.producing.produce_errors:may_be_split",
                "and not batch.is_unsplittable and not may_be_whole",
                "and not batch.is_unsplittable",
            ),
        ),
        "a batch that may be stored whole is sent in halves when it is told to be too large",
        ("duplicate",),
        1000,
        "tests/client/test_producer_idempotence.py::test_a_batch_that_may_be_appended_whole_is_not_split",
    ),
    Defect(
        "producer-epoch-not-bumped",
        (
            Edit(
                "tagwire.client.producing.idempotence:Idempotent.handle_failed_batch",
                "self.producer = bump_epoch(self.producer)",
                "pass",
            ),
        ),
        "after a batch is given up its numbers are used again in the same epoch: others are taken for duplicates of it",
        ("lost-write", "unseen"),
        200,
        "tests/client/test_producer_idempotence.py::test_what_was_in_flight_behind_a_batch_that_is_failed_is_not_written_twice",
    ),
    Defect(
        "retry-goes-last",
        (
            Edit(
                "tagwire.client.producing.partition_queue:PartitionQueue._insert",
                "self.batches.insert(index, batch)",
                "self.batches.append(batch)",
            ),
        ),
        "a batch that is sent again is sent after those that came later",
        ("nonmonotonic-send", "int-nonmonotonic-send"),
        50,
        "tests/client/test_producer_idempotence.py::test_no_batch_is_in_flight_before_the_broker_has_taken_the_first",
    ),
    Defect(
        "second-before-the-first",
        (
            Edit(
                f"{_NUMBERS}.allows_another",
                "self.producer == producer and self.is_acked",
                "self.producer == producer",
            ),
        ),
        "several batches are sent to a broker that does not know the producer: it takes the second for the first",
        ("nonmonotonic-send", "int-nonmonotonic-send", "lost-write", "sequence-out-of-order"),
        300,
        "tests/client/test_producer_idempotence.py::test_no_batch_is_in_flight_before_the_broker_has_taken_the_first",
    ),
    Defect(
        "plain-producer-sends-ahead",
        (
            Edit(
                "tagwire.client.producing.partition_queue:PartitionQueue.next_batch",
                "may_follow = len(self.in_flight) < max_in_flight and self.sequences.allows_another(head, producer)",
                "may_follow = max_in_flight == 1 or self.sequences.allows_another(head, producer)",
            ),
        ),
        "a producer without sequence numbers has several batches of a partition in flight: one overtakes another",
        ("nonmonotonic-send", "int-nonmonotonic-send"),
        50,
        "",
    ),
    Defect(
        "commits-without-the-lost",
        (
            Edit(
                "tagwire.client.producing.transaction_manager:TransactionManager.handle_failed_batch",
                "if self.state is TransactionState.IN_TRANSACTION",
                "if self.state is TransactionState.FATAL_ERROR",
            ),
        ),
        "a transaction of which a batch was given up is committed all the same",
        ("partial-transaction", "lost-write"),
        200,
        "tests/client/test_transactions.py::test_a_record_that_fails_fails_its_transaction_alone",
    ),
    Defect(
        "commits-before-all-is-sent",
        (
            Edit(
                "tagwire.client.producing.producer_core:ProducerCore.commit_transaction",
                "        if transactions.state is TransactionState.IN_TRANSACTION:\n            await self.flush()\n",
                "",
            ),
        ),
        "a transaction is committed before all of it is stored",
        ("partial-transaction", "lost-write"),
        20,
        "tests/client/test_transactions.py::test_what_is_committed_is_read_and_what_is_aborted_is_not",
    ),
    Defect(
        "offsets-left-out-of-the-transaction",
        (
            Edit(
                "tagwire.client.producing.transaction_manager:TransactionManager._commit_offsets",
                "            self._is_started = True\n",
                "            self._is_started = bool(self._partitions)\n",
            ),
        ),
        "a transaction that holds offsets alone is never ended: they stay pending",
        ("stuck-transaction", "group-offset-lost", "group-offset-back"),
        300,
        "",
    ),
    Defect(
        "leader-known-for-ever",
        (
            Edit(
                f"{_SENDER}._retry_or_fail",
                "self._network.forget([batch.topic_partition.topic])",
                "pass",
            ),
        ),
        "a producer goes on sending to a broker that does not lead the partition any more",
        ("unavailable", "group-stalled"),
        50,
        "",
    ),
    Defect(
        "coordinator-known-for-ever",
        (
            Edit(
                "tagwire.client.coordinator_client:CoordinatorClient.send",
                "if any(refusal.error in _LOST_COORDINATOR for refusal in refusals):",
                "if any(refusal.error in () for refusal in refusals):",
            ),
        ),
        "a coordinator that has moved is not looked for",
        ("unavailable", "stuck-transaction"),
        50,
        "",
    ),
)

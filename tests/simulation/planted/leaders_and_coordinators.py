"""Defects of who leads and coordinates, and of what a move leaves behind."""

from __future__ import annotations

from .defect import Defect, Edit

_LOG = "tagwire.broker.storage.log:PartitionLog"

LEADERS_AND_COORDINATORS = (
    Defect(
        "coordinator-serves-on-after-a-move",
        (
            Edit(
                "tagwire.broker.coordinated:OneKey.respond",
                "if node.image.coordinator_of(self.kind, key) != node.node_id:",
                "if node.node_id not in node.image.live:",
            ),
        ),
        "a node goes on with groups and transactional ids that another one coordinates by now",
        ("not-refused",),
        20,
        "",
    ),
    Defect(
        "leader-epochs-are-not-fenced",
        (
            Edit(
                "tagwire.broker.leadership:Leadership.check_epoch",
                "if epoch not in (-1, self.epoch):",
                "if epoch > self.epoch:",
            ),
        ),
        "a leader answers who knows an older leader epoch, whose records may be others",
        ("not-refused",),
        20,
        "",
    ),
    Defect(
        "high-watermark-one-too-low-after-a-move",
        (
            Edit(
                f"{_LOG}.begin_epoch",
                "            self.epochs = LeaderEpochs(starts)\n",
                "            self.epochs = LeaderEpochs(starts)\n"
                "            end = self._visible\n"
                "            self._visible = VisibleEnd(\n"
                "                max(end.offset - 1, 0), end.segment, end.position, end.newest, end.stable\n"
                "            )\n",
            ),
        ),
        "a new leader tells an end that is one before that of the last one, until something is written",
        ("high-watermark-back", "stale-end", "unseen", "vanished-read", "offsets-out-of-order", "unavailable"),
        50,
        "",
    ),
    Defect(
        "high-watermark-one-too-high-after-a-move",
        (
            Edit(
                f"{_LOG}.begin_epoch",
                "            self.epochs = LeaderEpochs(starts)\n",
                "            self.epochs = LeaderEpochs(starts)\n"
                "            end = self._visible\n"
                "            self._visible = VisibleEnd(\n"
                "                end.offset + 1, end.segment, end.position, end.newest, end.stable\n"
                "            )\n",
            ),
        ),
        "a new leader tells an end that is one past what is there, until something is written",
        ("high-watermark-past-end", "high-watermark-back", "unavailable"),
        50,
        "",
    ),
    Defect(
        "epoch-begins-before-its-first-batch",
        (
            Edit(
                f"{_LOG}.begin_epoch",
                "(begun, self._active.next_offset)]",
                "(begun, max(self._active.next_offset - 1, 0))]",
            ),
        ),
        "a leader epoch is told to begin with the last record of the one before",
        ("epoch-end-wrong",),
        50,
        "",
    ),
    Defect(
        "older-epochs-write",
        (
            Edit(
                "tagwire.broker.storage.producer_state:ProducerState.check",
                "if origin.epoch < known.epoch:",
                "if origin.epoch < known.epoch - 1:",
            ),
            Edit(
                "tagwire.broker.transactions.transaction:Transaction.check_producer",
                "if epoch != self.epoch:",
                "if epoch not in (self.epoch, self.epoch - 1):",
            ),
        ),
        "a producer that the next one of its transactional id has fenced is not fenced yet, nowhere",
        ("not-refused", "fenced-write", "G0"),
        20,
        "",
    ),
    Defect(
        "deleted-up-to-past-the-stable-offset",
        (
            Edit(
                "tagwire.broker.storage.readable_log:ReadableLog.stable_offset",
                "return self._view().stable",
                "return self._visible.stable",
            ),
        ),
        "where retention has deleted what is open, readers of committed records are sent before the log's start",
        ("log-start-past-stable",),
        500,
        "tests/broker/storage/test_producer_state.py::test_what_was_deleted_of_an_open_transaction_does_not_leave_the_stable_offset_before_the_start",
    ),
)

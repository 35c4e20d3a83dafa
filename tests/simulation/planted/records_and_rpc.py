"""Defects of what both ends of the wire have in common: records and frames."""

from __future__ import annotations

from .defect import Defect, Edit

_ABORTED = "tagwire.records.aborted:AbortedTransactions"

RECORDS_AND_RPC = (
    Defect(
        "abort-hides-what-follows",
        (
            Edit(
                f"{_ABORTED}.hides",
                "_is_abort(header, data):\n            del self._open[header.producer_id]",
                "_is_abort(header, data):\n            pass",
            ),
        ),
        "after an aborted transaction what the same producer commits next is hidden from readers, and passed",
        ("lost-write", "poll-skip"),
        50,
        "",
    ),
    Defect(
        "aborted-from-its-first-batch-alone",
        (
            Edit(
                f"{_ABORTED}.hides",
                "self._ahead[-1][1] <= header.last_offset",
                "header.base_offset <= self._ahead[-1][1] <= header.last_offset",
            ),
        ),
        "a reader that begins inside an aborted transaction sees the rest of it",
        ("aborted-read", "intermediate-read"),
        100,
        "",
    ),
    Defect(
        "rewritten-offsets-move-up",
        (
            Edit(
                "tagwire.records.writer:rewrite",
                "deltas = [offset - batch.base_offset for offset in offsets]",
                "deltas = list(range(len(offsets)))",
            ),
        ),
        "where compaction takes records out of a batch, those after them get other offsets",
        ("inconsistent-offsets", "lost-write", "duplicate"),
        100,
        "",
    ),
    Defect(
        "producer-forgotten-by-compaction",
        (
            Edit(
                "tagwire.records.writer:rewrite",
                "attributes &= ~(CODEC_MASK | DELETE_HORIZON)",
                "attributes = 0",
            ),
        ),
        "a batch that compaction empties is not transactional any more: its transaction's marker ends nothing",
        ("stuck-transaction", "aborted-read", "transaction-forgotten"),
        1000,
        "",
    ),
    Defect(
        "frame-lost-where-two-meet",
        (
            Edit(
                "tagwire.rpc.frames:Frames.received",
                "            self._keep(self._scratch[:count])",
                "            self._keep(self._scratch[: min(count, READ_BYTES - 1)])",
            ),
        ),
        "of a read that fills the whole buffer the last byte is lost",
        ("unavailable", "unexpected-error", "not-refused"),
        300,
        "",
    ),
)

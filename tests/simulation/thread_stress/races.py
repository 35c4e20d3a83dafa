"""Defects that only threads which run at once can show: each has to be found by its stress."""

from __future__ import annotations

from tests.simulation.planted import Defect, Edit

_ACCUMULATOR = "tagwire.client.producing.record_accumulator:RecordAccumulator"

RACES = {
    defect.name: defect
    for defect in (
        Defect(
            "producers-expire-without-the-lock",
            (
                Edit(
                    "tagwire.broker.storage.log:PartitionLog.expire_producers",
                    "with self._writing:",
                    "if True:",
                ),
            ),
            "upkeep forgets producers while others append",
            ("logs",),
            1,
            "",
        ),
        Defect(
            "segments-replaced-without-the-lock",
            (
                Edit(
                    "tagwire.broker.storage.log:PartitionLog.replace",
                    "                with self._writing:\n                    new.owner = self._writing\n",
                    "                if True:\n                    new.owner = self._writing\n",
                ),
            ),
            "compaction puts a segment in its place while another is begun, which is lost",
            ("logs",),
            1,
            "",
        ),
        Defect(
            "checkpoint-without-the-lock",
            (
                Edit(
                    "tagwire.broker.storage.checkpoints:OffsetCheckpoint.raise_to",
                    "with self._saving:",
                    "if True:",
                ),
            ),
            "of two who save their offsets in one file, one takes the other's back",
            ("logs",),
            1,
            "",
        ),
        Defect(
            "append-without-the-lock",
            (Edit(f"{_ACCUMULATOR}.append", "with self._lock:", "if True:"),),
            "a record is added to a batch that is being closed: it is never sent, or counted twice",
            ("accumulator",),
            1,
            "",
        ),
        Defect(
            "drain-without-the-lock",
            (Edit(f"{_ACCUMULATOR}.drain", "with self._lock:", "if True:"),),
            "a batch that is closed while batches are taken to be sent is lost",
            ("accumulator",),
            1,
            "",
        ),
        Defect(
            "looks-before-it-can-be-told",
            (
                Edit(
                    "tagwire.client.core_thread:CoreThread.wait_for",
                    "            self._waiters[waiter] = None"
                    "  # before it is looked at: what comes after that is told\n",
                    "",
                ),
                Edit(
                    "tagwire.client.core_thread:CoreThread.wait_for",
                    "            if not is_ready():\n",
                    "            if not is_ready():\n                self._waiters[waiter] = None\n",
                ),
            ),
            "what comes between looking and waiting is told to nobody",
            ("core-thread",),
            1,
            "",
        ),
    )
}
"""By name; `breaks` names the stress, and `seeds` how many runs of it may be needed."""

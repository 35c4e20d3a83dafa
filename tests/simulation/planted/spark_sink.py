"""Defects of the exactly-once sink: its driver and its tasks."""

from __future__ import annotations

from .defect import Defect, Edit

_DRIVER = "tagwire.spark.sink.driver:Driver"

SPARK_SINK = (
    Defect(
        "ends-before-it-decides",
        (
            Edit(
                f"{_DRIVER}.decide",
                "            self._write(producer, decision, lambda: self._check(client, prepared, decision))\n",
                "            self._check(client, prepared, decision)\n",
            ),
        ),
        "transactions of a micro-batch are committed before the decision is: a driver that dies between leaves some",
        ("sink-row-twice", "sink-row-lost"),
        200,
        "",
    ),
    Defect(
        "decides-without-looking",
        (
            Edit(
                f"{_DRIVER}._check",
                "if found != (_ONGOING, listed.producer_id, listed.epoch):",
                "if found[0] == _ONGOING and found != (_ONGOING, listed.producer_id, listed.epoch):",
            ),
            Edit(f"{_DRIVER}._check", "if age > allowed / 2:", "if age > allowed * 1000:"),
        ),
        "a micro-batch is decided although a transaction of it was aborted meanwhile",
        ("sink-row-lost",),
        300,
        "",
    ),
    Defect(
        "cleans-up-what-was-decided",
        (
            Edit(
                f"{_DRIVER}.prepare",
                "left = [one for one in decided.values() if not one.done]",
                "left: list[Decision] = []",
            ),
        ),
        "a new driver aborts the transactions of a micro-batch that the one before had decided",
        ("sink-row-lost",),
        200,
        "",
    ),
    Defect(
        "fences-without-looking-again",
        (
            Edit(
                f"{_DRIVER}._orphaned",
                "if orphaned and self._is_fenced(client, identity):",
                "if identity.producer_id < 0:",
            ),
        ),
        "a driver that slept in its clean-up aborts transactions of the newer driver's tasks",
        ("sink-row-lost",),
        1000,
        "",
    ),
    Defect(
        "task-uses-an-id-again",
        (
            Edit(
                "tagwire.spark.sink.task_transactions:_PooledId.is_free",
                "return decided.get(self.query_id, -1) >= self.batch_id",
                "return decided.get(self.query_id, -1) >= self.batch_id - 1",
            ),
            Edit(
                "tagwire.spark.sink.task_transactions:_is_committed",
                "return found[transactional_id].state in _COMMITTED",
                "return found[transactional_id].state is not None",
            ),
        ),
        "a task uses a transactional id whose transaction is still to be decided, which aborts it",
        ("sink-row-lost", "sink-stalled", "unanswered"),
        200,
        "",
    ),
    Defect(
        "batch-written-again",
        (
            Edit(
                f"{_DRIVER}.abandon",
                "if decided is not None and decided.batch_id >= batch_id:",
                "if decided is not None and decided.batch_id > batch_id:",
            ),
        ),
        "a driver that does not know whether its micro-batch is committed aborts what is left of it",
        ("sink-row-lost",),
        300,
        "",
    ),
)

"""Threads that append records to the batches of one producer, and the one that sends them."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from tagwire.client.config import ProduceSettings
from tagwire.client.metadata import PartitionMetadata, TopicMetadata
from tagwire.client.producing.batch_delivery import BatchDelivery
from tagwire.client.producing.blocking_completion import BatchCompletion
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.client.producing.record_accumulator import RecordAccumulator
from tagwire.client.scheduling import completed
from tagwire.records import Record

from .racing import race

WRITERS = 4
PARTITIONS = 3
SIZE = 20
PATIENCE = 5.0


def stress_accumulator(seconds: float) -> list[str]:
    """What was wrong with the batches of a producer that threads append to; nothing, when all is well."""
    settings = ProduceSettings(linger=0.0, buffer_memory=40_000, batch_bytes=600)
    completion = BatchCompletion(lambda: None)
    accumulator: RecordAccumulator[BatchDelivery] = RecordAccumulator(
        settings, completion, time.monotonic, lambda: None, BatchDelivery
    )
    metadata = {index: PartitionMetadata(index, 1) for index in range(PARTITIONS)}
    partitioner = TopicPartitioner(TopicMetadata("t", partitions=metadata), "none", settings.batch_bytes)
    ends = Counter[int]()
    sent: dict[ProducerBatch, list[Record]] = {}  # a batch that is complete has forgotten its records
    left = [WRITERS]

    def append(number: int, is_over: Callable[[], bool]) -> None:
        deliveries = []
        try:
            for count in itertools.count():
                if is_over():
                    break
                record: Record = Record(b"%d" % number, b"%d" % count)
                while (delivery := accumulator.append(partitioner, record, SIZE, None)) is None:
                    completed(accumulator.room(SIZE, time.monotonic() + PATIENCE))
                deliveries.append((count, delivery))
                ends[number] += 1
            completed(accumulator.flush(time.monotonic() + PATIENCE))
            for count, delivery in deliveries:
                batch, index = delivery._batch.part_of(delivery._index)
                if (sent[batch][index].key, sent[batch][index].value) != (b"%d" % number, b"%d" % count):
                    raise AssertionError(f"record {count} of {number} is told as {sent[batch][index]!r}")
        finally:
            left[0] -= 1

    def send(_: Callable[[], bool]) -> None:
        offset = 0
        while left[0]:
            drained = accumulator.drain(time.monotonic())
            sent.update((batch, list(batch.records)) for batch in drained)
            accumulator.complete([(batch, offset, None) for batch in drained])
            offset += 1
            if not drained:
                time.sleep(0)

    problems = race([*(partial(append, number) for number in range(WRITERS)), send], seconds)
    return problems or _wrong(sent, ends, accumulator)


def _wrong(
    sent: Mapping[ProducerBatch, list[Record]], ends: Counter[int], accumulator: RecordAccumulator[BatchDelivery]
) -> list[str]:
    found: dict[int, list[int]] = {number: [] for number in ends}
    for records in sent.values():
        for record in records:
            found[int(record.key or b"-1")].append(int(record.value or b"-1"))
    problems = [
        f"of writer {number} {len(found[number])} records are sent, not {count}, or in another order"
        for number, count in ends.items()
        if found[number] != list(range(count))
    ]
    if accumulator.buffered_bytes or accumulator.pending_records:
        held = f"{accumulator.buffered_bytes} bytes and {accumulator.pending_records} records"
        problems.append(f"{held} are held when all is delivered")
    return problems

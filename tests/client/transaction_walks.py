"""What transactions are worth on any broker: the same tests for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.client import LATEST, Client, Reader, TopicPartition, end_transaction
from tagwire.errors import ProducerFencedError

from .walks import Kind, Walk, until

LEVELS = ["read_committed", "read_uncommitted"]


class TransactionWalks:
    """Committed, aborted, open, taken over and ended by others. A module with a broker gives the fixture `kind`."""

    @pytest.fixture
    def walk(self, kind: Kind) -> Iterator[Walk]:
        with kind.client() as client:
            walk = Walk(kind, client)
            walk.needs("InitProducerId", "EndTxn", "WriteTxnMarkers")  # without markers nothing tells what is committed
            yield walk

    @pytest.mark.parametrize("isolation", LEVELS)
    def test_what_is_aborted_is_read_by_those_who_ask_for_it(self, walk: Walk, isolation: str) -> None:
        topic = walk.topic(2)
        with walk.producer(transactional_id=walk.name()) as producer:
            producer.init_transactions()
            for number, commit in enumerate([True, False, True, False]):
                producer.begin_transaction()
                for index in range(600):
                    producer.send(topic, b"%d of %d" % (index, number), headers=[("n", b"h")], partition=index % 2)
                producer.flush()
                (producer.commit_transaction if commit else producer.abort_transaction)()
        numbers = [0, 2] if isolation == "read_committed" else [0, 1, 2, 3]
        expected = {
            part: [b"%d of %d" % (index, number) for number in numbers for index in range(part, 600, 2)]
            for part in range(2)
        }

        def columns() -> dict[int, list[bytes]]:
            found: dict[int, list[bytes]] = {0: [], 1: []}
            for batch in walk.read(topic, 2, isolation=isolation):
                for row in batch.select(["partition", "value"]).to_pylist():
                    found[row["partition"]].append(row["value"])
            return found

        until(lambda: sum(map(len, columns().values())) >= 300 * len(numbers) * 2)
        assert columns() == expected
        objects: dict[int, list[bytes | None]] = {0: [], 1: []}
        for record in walk.read(topic, 2, isolation=isolation).records():
            objects[record.partition].append(record.value)
        assert objects == expected

    def test_readers_of_committed_records_wait_before_what_is_open(self, walk: Walk) -> None:
        topic = walk.topic()
        walk.fill(topic, 5)
        with walk.producer(transactional_id=walk.name()) as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send(topic, b"open").result()
                assert _values(walk.read(topic)) == [b"0", b"1", b"2", b"3", b"4", b"open"]
                assert _values(walk.read(topic, isolation="read_committed")) == [b"0", b"1", b"2", b"3", b"4"]
        until(lambda: _values(walk.read(topic, isolation="read_committed"))[-1] == b"open")

    def test_offsets_move_with_the_transaction_they_are_part_of(self, walk: Walk) -> None:
        topic, group = walk.topic(), walk.name()
        at = TopicPartition(topic, 0)
        with walk.producer(transactional_id=walk.name()) as producer:
            producer.init_transactions()
            for offset, commit in ((3, True), (7, False)):
                producer.begin_transaction()
                producer.send(topic, b"v")
                producer.send_offsets({at: offset}, group)
                (producer.commit_transaction if commit else producer.abort_transaction)()
        assert walk.admin.group_offsets(group)[at].offset == 3

    def test_a_producer_whose_id_is_taken_is_fenced(self, walk: Walk) -> None:
        topic, name = walk.topic(), walk.name()
        with (
            walk.producer(transactional_id=name) as first,
            walk.producer(transactional_id=name) as second,
        ):
            first.init_transactions()
            first.begin_transaction()
            first.send(topic, b"first").result()
            second.init_transactions()
            with pytest.raises(ProducerFencedError):
                first.commit_transaction()
            with second.transaction():
                second.send(topic, b"second")
        until(lambda: _values(walk.read(topic, isolation="read_committed")) == [b"second"])

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_transaction_can_be_ended_from_another_process(self, walk: Walk, commit: bool) -> None:
        topic, name = walk.topic(), walk.name()
        producer = walk.producer(transactional_id=name)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"left behind")
        producer.flush()
        who = producer.identity
        producer.close(abort=False)
        with Client(walk.kind.bootstrap, exclude=walk.kind.exclude) as other:
            for _ in range(2):  # whoever does not know whether it has happened asks again
                end_transaction(
                    other, name, who.producer_id, who.epoch, commit=commit, transaction_version=who.transaction_version
                )
        walk.fill(topic, 1)
        end = walk.client.list_offsets({(topic, 0): LATEST})[topic, 0]
        # To a fixed offset, which waits for the transaction's marker.
        reader = walk.reader({(topic, 0): 0}, end_offsets={(topic, 0): end}, isolation="read_committed")
        assert _values(reader) == ([b"left behind"] if commit else []) + [b"0"]


def _values(reader: Reader) -> list[bytes]:
    return [value for batch in reader for value in batch["value"].to_pylist()]

"""A task's reading of one range of a partition, without a session."""

from __future__ import annotations

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Reader
from tagwire.errors import Error, KafkaError, RequestTimeoutError
from tagwire.records import Record
from tagwire.spark.source.fetch import read_range
from tagwire.spark.source.offsets import OffsetRange

from .conftest import Produce


def offsets_of(broker: Broker, topic: str, end: int, *, fail_on_data_loss: bool) -> list[int]:
    client = {"bootstrap.servers": broker.bootstrap, "request.timeout.ms": "1000"}
    batches = read_range(OffsetRange(topic, 0, 0, end), client, ("offset",), fail_on_data_loss=fail_on_data_loss)
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def test_what_was_cut_off_the_end_of_a_partition_since_it_was_planned_is_left_out_where_loss_is_none(
    broker: Broker, topic: str, produce: Produce
) -> None:
    """As a leader leaves a partition that lacks what the one before it had."""
    produce(topic, {0: [Record(b"k", b"v")] * 3})
    assert offsets_of(broker, topic, 5, fail_on_data_loss=False) == [0, 1, 2]
    with pytest.raises(RequestTimeoutError, match="the read ends at 5, the partition at 3"):
        offsets_of(broker, topic, 5, fail_on_data_loss=True)


def test_a_topic_that_is_gone_is_left_out_where_loss_is_none(broker: Broker, topic: str, produce: Produce) -> None:
    produce(topic, {0: [Record(b"k", b"v")] * 3})
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([topic])
    assert offsets_of(broker, topic, 3, fail_on_data_loss=False) == []


def test_what_was_written_behind_a_cut_before_it_was_looked_at_is_read_where_loss_is_none(
    broker: Broker, topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that lacks the position has got records past it by the time that it is asked what it holds."""

    cuts = [KafkaError(Error.OFFSET_OUT_OF_RANGE, f"{topic}-0: no offset 0")]

    class Cut(Reader):
        def __iter__(self):
            if cuts:
                raise cuts.pop()
            return super().__iter__()

    produce(topic, {0: [Record(b"k", b"v")] * 3})
    monkeypatch.setattr("tagwire.client.Reader", Cut)
    assert offsets_of(broker, topic, 3, fail_on_data_loss=False) == [0, 1, 2]


@pytest.mark.parametrize(
    "error", [KafkaError(Error.OFFSET_OUT_OF_RANGE, "no offset 0"), RequestTimeoutError("the read ends at 3")]
)
def test_a_topic_that_is_deleted_before_it_is_asked_what_it_holds_is_left_out_where_loss_is_none(
    broker: Broker, topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    class Cut(Reader):
        def __iter__(self):
            with Admin(broker.bootstrap) as admin:
                admin.delete_topics([topic])
            raise error

    produce(topic, {0: [Record(b"k", b"v")] * 3})
    monkeypatch.setattr("tagwire.client.Reader", Cut)
    assert offsets_of(broker, topic, 3, fail_on_data_loss=False) == []

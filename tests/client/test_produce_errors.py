"""What becomes of a batch after each error, as the table of `produce_errors` has it."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import records
from tagwire.client import TopicPartition
from tagwire.client.producing.blocking_completion import BatchCompletion
from tagwire.client.producing.produce_errors import SEQUENCE_ERRORS, Outcome, outcome_of
from tagwire.client.producing.producer_batch import ProducerBatch
from tagwire.client.producing.producer_id import ProducerIdAndEpoch
from tagwire.errors import Error
from tagwire.records import Record


def batch(*, count: int = 2, has_sequence: bool = True, **fields: Any) -> ProducerBatch:
    data = records.write([Record(None, b"v")] * count)
    made = ProducerBatch.encoded(TopicPartition("t", 0), BatchCompletion(lambda: None), 0.0, data)
    if has_sequence:
        made.set_producer_state(ProducerIdAndEpoch(1, 0), 7, transactional=False)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


ROWS = [
    (Error.NONE, {}, Outcome.DELIVERED),
    (Error.DUPLICATE_SEQUENCE_NUMBER, {}, Outcome.DELIVERED),
    (Error.DUPLICATE_SEQUENCE_NUMBER, {"has_sequence": False}, Outcome.RETRY),
    (Error.MESSAGE_TOO_LARGE, {}, Outcome.SPLIT),
    (Error.MESSAGE_TOO_LARGE, {"count": 1}, Outcome.RETRY),
    (Error.MESSAGE_TOO_LARGE, {"is_unsplittable": True}, Outcome.RETRY),
    (Error.MESSAGE_TOO_LARGE, {"may_be_appended": True}, Outcome.RETRY),
    (Error.MESSAGE_TOO_LARGE, {"may_be_appended": True, "has_sequence": False}, Outcome.SPLIT),
    *((error, {}, Outcome.NEW_SEQUENCE) for error in SEQUENCE_ERRORS),
    *((error, {"has_sequence": False}, Outcome.RETRY) for error in SEQUENCE_ERRORS),
]


@pytest.mark.parametrize(("error", "fields", "outcome"), ROWS)
def test_an_error_means_to_a_batch_what_the_table_says(error: Error, fields: dict[str, Any], outcome: Outcome) -> None:
    assert outcome_of(batch(**fields), error, is_oldest=True) is outcome


def test_a_batch_behind_an_incomplete_one_is_only_out_of_order() -> None:
    found = {error: outcome_of(batch(), error, is_oldest=False) for error in SEQUENCE_ERRORS}
    assert found.pop(Error.OUT_OF_ORDER_SEQUENCE_NUMBER) is Outcome.RETRY_IN_ORDER
    assert set(found.values()) == {Outcome.NEW_SEQUENCE}


def test_every_other_error_has_the_batch_sent_again_if_that_is_worth_it() -> None:
    others = set(Error) - {error for error, _, _ in ROWS}
    assert len(others) > 100
    assert {outcome_of(batch(), error, is_oldest=True) for error in others} == {Outcome.RETRY}

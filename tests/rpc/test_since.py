"""The versions that both ends hold to are those at which the catalog's fields begin."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.rpc import since


@pytest.mark.parametrize(
    ("version", "message", "path"),
    [
        (since.PRODUCE_TOPIC_IDS, messages.ProduceRequest, ["topic_data", "topic_id"]),
        (since.FETCH_TOPIC_IDS, messages.FetchRequest, ["topics", "topic_id"]),
        (since.DELETE_TOPICS_IDS, messages.DeleteTopicsRequest, ["topics"]),
        (since.DELETE_TOPICS_IDS, messages.DeleteTopicsRequest, ["topics", "topic_id"]),
        (since.FIND_COORDINATOR_KEYS, messages.FindCoordinatorRequest, ["coordinator_keys"]),
        (since.OFFSET_FETCH_GROUPS, messages.OffsetFetchRequest, ["groups"]),
        (since.PRODUCE_RECORD_BATCHES, messages.ProduceRequest, ["transactional_id"]),
        (since.END_TXN_SECOND_TRANSACTIONS, messages.EndTxnResponse, ["producer_epoch"]),
    ],
)
def test_what_begins_with_a_version_is_a_field_that_begins_with_it(version: int, message: Any, path: list[str]) -> None:
    struct = message.spec.root
    for name in path:
        field = next(field for field in struct.fields if field.attribute == name)
        struct = field.struct
    assert field.versions.lowest == version

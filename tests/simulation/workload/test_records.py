"""Records by their names: who reads one knows whether it is as it was sent."""

from __future__ import annotations

import pytest

from tagwire.records import Record

from .records import mark_of, name_of, payload


def record(key=b"k", timestamp=7, *, tombstone=False, mark=True):
    sent = payload("p.1", tombstone=tombstone, size=8, mark=mark_of(b"k", 7) if mark else None)
    return Record(key, timestamp=timestamp, **sent)


@pytest.mark.parametrize("tombstone", [False, True])
@pytest.mark.parametrize("mark", [False, True])
def test_a_record_that_is_as_it_was_sent_has_its_name(tombstone, mark):
    assert name_of(record(tombstone=tombstone, mark=mark)) == "p.1"


@pytest.mark.parametrize("tombstone", [False, True])
def test_a_marked_record_with_another_key_or_time_has_a_name_that_nobody_sent(tombstone):
    assert name_of(record(b"l", tombstone=tombstone)) == "p.1, changed"
    assert name_of(record(timestamp=8, tombstone=tombstone)) == "p.1, changed"
    assert name_of(record(None, tombstone=tombstone)) == "p.1, changed"


def test_a_tombstone_without_its_headers_has_no_name():
    assert name_of(Record(b"k", None, timestamp=7)) == ""

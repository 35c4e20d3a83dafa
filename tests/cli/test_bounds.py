"""Where a read starts and ends, as a person says it."""

from __future__ import annotations

import pytest
import typer

from tagwire.cli.bounds import Bound, parse_bound, resolve
from tagwire.partitions import LATEST, TopicPartition


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", Bound(offset=-2)),
        ("latest", Bound(offset=-1)),
        ("0", Bound(offset=0)),
        ("88121", Bound(offset=88121)),
        ("9223372036854775807", Bound(offset=2**63 - 1)),
        ("2013-07-04", Bound(timestamp=1_372_896_000_000)),
        ("2013-07-04T06:00", Bound(timestamp=1_372_917_600_000)),
        ("2013-07-04 06:00", Bound(timestamp=1_372_917_600_000)),
        ("2013-07-04T06:00:00.250", Bound(timestamp=1_372_917_600_250)),
        ("2013-07-04T06:00Z", Bound(timestamp=1_372_917_600_000)),
        ("2013-07-04T06:00+02:00", Bound(timestamp=1_372_910_400_000)),
        ("1969-12-31", Bound(timestamp=0)),
        ("0001-01-01", Bound(timestamp=0)),
    ],
)
def test_a_bound_is_a_word_an_offset_or_a_time_in_utc(text, bound):
    assert parse_bound(text, "--from") == bound


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "1.5", "2013-13-01", "9223372036854775808", "1" * 5000])
def test_anything_else_is_refused_by_the_options_name(text):
    with pytest.raises(typer.BadParameter) as caught:
        parse_bound(text, "--from")
    said = caught.value.format_message()
    assert "'--from'" in said
    assert len(said) < 250


def test_a_record_that_comes_while_a_time_after_the_last_one_is_looked_up_is_not_passed_by():
    class Busy:
        """A client of partitions into which a record comes whenever something was asked of them."""

        ends = 5

        def list_offsets(self, wanted):
            found = {at: self.ends if time == LATEST else -1 for at, time in wanted.items()}
            self.ends += 1
            return found

    at = TopicPartition("t", 0)
    assert resolve(Busy(), Bound(timestamp=1_372_896_000_000), [at]) == {at: 5}

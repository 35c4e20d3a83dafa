"""Ranges as a person says them: edges counted from the end, at a time, for each partition."""

from __future__ import annotations

import pytest
import typer

from tagwire.cli.bounds import Bound
from tagwire.cli.ranges import Edge, Last, parse_edge, parse_range

EARLIEST, LATEST = Bound(offset=-2), Bound(offset=-1)


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("earliest", Edge(EARLIEST)),
        ("88121", Edge(Bound(offset=88121))),
        ("-10", Edge(Last(10))),
        ("@1372917600000", Edge(Bound(timestamp=1_372_917_600_000))),
        ("2013-07-04T06:00", Edge(Bound(timestamp=1_372_917_600_000))),
        ("0=12", Edge(LATEST, {0: Bound(offset=12)})),
        (
            "3=@5,0=-2,11=earliest",
            Edge(LATEST, {3: Bound(timestamp=5), 0: Last(2), 11: EARLIEST}),
        ),
    ],
)
def test_an_edge_is_a_bound_a_count_from_the_end_or_one_for_each_partition(text, edge):
    assert parse_edge(text, "--from") == edge


@pytest.mark.parametrize("text", ["-", "--5", "@", "@x", "0=", "0=1,0=2", "0=1,", "0=1,x=2", "0=1;1=2", "-" + "9" * 50])
def test_what_is_no_edge_is_refused_by_the_options_name(text):
    with pytest.raises(typer.BadParameter) as caught:
        parse_edge(text, "--from")
    assert "'--from'" in caught.value.format_message()
    assert len(caught.value.format_message()) < 250


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("100:200", Bound(offset=100), Bound(offset=200)),
        ("100:", Bound(offset=100), LATEST),
        (":200", EARLIEST, Bound(offset=200)),
        ("-10", Last(10), LATEST),
        ("-10:-3", Last(10), Last(3)),
        ("@5:@9", Bound(timestamp=5), Bound(timestamp=9)),
        ("latest", LATEST, LATEST),
        (":", EARLIEST, LATEST),
    ],
)
def test_a_range_is_two_edges_of_which_either_may_be_left_away(text, start, end):
    assert parse_range(text, "--offsets") == (Edge(start), Edge(end))


@pytest.mark.parametrize("text", ["1:2:3", "2013-07-04T06:00:2013-07-05", "x:1", "1:x"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(typer.BadParameter) as caught:
        parse_range(text, "--offsets")
    assert "'--offsets'" in caught.value.format_message()

"""The judge: each anomaly is found in a history that has it, and not in the innocent one beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.simulation.history import History
from tests.simulation.judge import RULES, Anomaly, judge
from tests.simulation.judge.facts import Facts
from tests.simulation.stories import INNOCENT, PLANTED, Story, Telling

DOCS = Path(__file__).parents[2] / "docs"


def found(telling: Telling) -> list[Anomaly]:
    story = Story()
    telling(story)
    return judge(History.parse(story.history.lines()))


@pytest.mark.parametrize(
    ("name", "telling"),
    [pytest.param(name, each, id=f"{name}-{each.__name__.strip('_')}") for name, of in PLANTED.items() for each in of],
)
def test_an_anomaly_is_found_by_its_name(name, telling):
    anomalies = found(telling)
    assert name in {anomaly.name for anomaly in anomalies}, anomalies


@pytest.mark.parametrize("telling", INNOCENT, ids=lambda telling: telling.__name__.strip("_"))
def test_what_is_innocent_is_not_found(telling):
    assert [anomaly.story() for anomaly in found(telling)] == []


@pytest.mark.parametrize(
    ("segment", "is_found"),
    [
        pytest.param(("broker", "c-1", 14.0, 16.5), False, id="to-the-first"),
        pytest.param(("broker", "c", 14.0, 16.5), False, id="to-the-process-that-the-first-is-in"),
        pytest.param(("c-1", "broker", 16.5, 19.0), False, id="from-the-first"),
        pytest.param(("broker", "d", 14.0, 16.5), True, id="of-another"),
        pytest.param(("broker", "c-1", 0.5, 2.0), True, id="long-ago"),
        pytest.param(("broker", "c-11", 14.0, 16.5), True, id="of-one-of-a-longer-name"),
    ],
)
def test_a_member_whose_heartbeats_are_late_is_not_one_that_keeps_what_is_anothers(segment, is_found):
    story = Story()
    story.assign("c-1#2", 1)
    for _ in range(10):
        story.poll(process="c-1#2", group="g", generation=1)
    story.assign("d", 2)
    story.poll(process="c-1#2", group="g", generation=1)
    anomalies = judge(story.history, late=[segment])
    assert [anomaly.name for anomaly in anomalies] == ["two-owners"] * is_found


@pytest.mark.parametrize(("ends", "is_found"), [(("broker", "d"), False), (("broker", "c"), True)])
def test_a_micro_batch_whose_requests_are_late_is_no_sign_of_a_query_that_stalls(ends, is_found):
    story = Story()
    story.note("workload", "quiet")
    for _ in range(4):
        told = {"sink": "s", "query": "q", "batch": 1, "topic": "u", "rows": ["r1"], "is_disturbed": False}
        story.end(story.begin("d", "sink_batch", **told), "info")
    anomalies = judge(story.history, late=[(*ends, 0.0, 1000.0)])
    assert [anomaly.name for anomaly in anomalies] == ["sink-stalled"] * is_found


def test_every_name_of_every_rule_is_planted():
    assert {name for rule in RULES for name in rule.names} == set(PLANTED)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.judge)
def test_a_rule_finds_what_it_says_and_nothing_else(rule):
    names = set()
    for tellings in PLANTED.values():
        for telling in tellings:
            story = Story()
            telling(story)
            names |= {anomaly.name for anomaly in rule.find(Facts(story.history))}
    assert names == set(rule.names)


def test_an_anomaly_is_told_by_the_events_that_show_it_alone():
    def telling(story):
        for offset in range(100):
            story.send(f"r{offset}", offset)
        story.final(*((offset, f"r{offset}") for offset in range(100) if offset != 50))

    (anomaly,) = found(telling)
    assert anomaly.story().splitlines() == [
        "lost-write: r50 was acknowledged at t-0@50, and a read_uncommitted read lacks it",
        *(f"  {event}" for event in anomaly.events),
    ]
    assert [(event.type, event.f) for event in anomaly.events] == [
        ("invoke", "send"),
        ("ok", "send"),
        ("invoke", "final_read"),
        ("ok", "final_read"),
    ]
    assert anomaly.events[-1].value["records"] == [[49, "r49"], [51, "r51"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.judge)
def test_the_document_that_gives_a_promise_has_that_heading(rule):
    page, _, anchor = rule.document.partition("#")
    headings = re.findall(r"^#+ (.*)$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert anchor in {"", *anchors}

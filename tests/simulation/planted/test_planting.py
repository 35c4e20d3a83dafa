"""Every defect goes in and comes out again, and is refused where it would change nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tagwire
from tests.simulation.judge import RULES
from tests.simulation.thread_stress.races import RACES

from . import DEFECTS, Defect, Edit, PlantError, plant, planted
from .defect import _function

SOURCES = Path(tagwire.__file__).parents[1]
JUDGED = {name for rule in RULES for name in rule.names}


def function_of(name):
    module, _, qualified = name.partition(":")
    return _function(__import__(module, fromlist=["_"]), qualified)


@pytest.mark.parametrize("name", [*DEFECTS, *RACES])
def test_a_defect_changes_its_functions_and_nothing_once_it_is_taken_back(name):
    defect = DEFECTS.get(name) or RACES[name]
    functions = {function_of(edit.function) for edit in defect.edits}
    before = {function: function.__code__ for function in functions}
    with planted([defect]):
        for function in functions:
            assert function.__code__ is not before[function]
            assert _text(function.__code__) != _text(before[function])
    assert {function: function.__code__ for function in functions} == before


def _text(code):
    inner = [_text(constant) if hasattr(constant, "co_code") else constant for constant in code.co_consts]
    return code.co_code, code.co_names, repr(inner)


def test_there_are_defects_in_every_room_each_told_in_a_line():
    assert len(DEFECTS) == len({defect.told for defect in DEFECTS.values()}) >= 60
    assert {defect.room.partition("/")[0] for defect in DEFECTS.values()} == {
        "broker",
        "client",
        "records",
        "rpc",
        "spark",
    }
    for name, defect in DEFECTS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
        assert (SOURCES / defect.file).is_file()
        assert set(defect.breaks) <= JUDGED, name
        assert defect.breaks
        assert defect.seeds > 0
        assert "\n" not in defect.told


def edited(function, old, new):
    return Defect("a-defect", (Edit(function, old, new),), "it breaks", ("lost-write",), 1, "")


def test_a_defect_whose_text_is_gone_is_refused():
    with pytest.raises(PlantError, match="holds 0 times, not once"):
        plant(edited("tagwire.records.batch:next_sequence", "what it never said", "x"))


def test_a_defect_whose_text_is_there_twice_is_refused():
    with pytest.raises(PlantError, match="holds 3 times, not once"):
        plant(edited("tagwire.records.batch:next_sequence", "count", "x"))


def test_a_defect_in_a_function_that_is_gone_is_refused():
    for function in ("tagwire.records.batch:no_such", "tagwire.nowhere:function", "tagwire.records.batch:MAX_SEQUENCE"):
        with pytest.raises(PlantError, match="is not there any more"):
            plant(edited(function, "a", "b"))


def test_what_cannot_be_planted_whole_is_not_planted_at_all():
    function = function_of("tagwire.records.batch:next_sequence")
    before = function.__code__
    half = Defect(
        "a-defect",
        (
            Edit("tagwire.records.batch:next_sequence", "sequence + count", "sequence - count"),
            Edit("tagwire.records.batch:next_sequence_of_none", "a", "b"),
        ),
        "it breaks",
        ("lost-write",),
        1,
        "",
    )
    with pytest.raises(PlantError):
        plant(half)
    assert function.__code__ is before

"""What mutants are made of, and that each can be planted by its name alone."""

from __future__ import annotations

import re

import pytest

from tests.simulation.planted import PlantError, defect, planted
from tests.simulation.planted.defect import _function
from tests.simulation.planted.mutants import mutants

MODULE = "tagwire.broker.storage.log_reading"


def kinds_of(source, tmp_path, monkeypatch):
    (tmp_path / "mutated.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "mutated", raising=False)
    return {(each.name.rpartition(":")[2], each.told) for each in mutants("mutated")}


def test_conditions_bounds_statements_and_extremes_are_changed(tmp_path, monkeypatch):
    source = '''
class Of:
    def function(self, a, b):
        """A text is no statement."""
        if a < b:
            self.last = max(a, b + 1)
        found = [each for each in a if each]
        self.tell(found, wait=True)
        return a and b
'''
    assert kinds_of(source, tmp_path, monkeypatch) == {
        ("turned", "a < b  ->  (not (a < b))"),
        ("bound", "a < b  ->  a <= b"),
        ("left-out", "self.last = max(a, b + 1)  ->  pass"),
        ("other-extreme", "max  ->  min"),
        ("one-less", "b + 1  ->  (b)"),
        ("turned", "each  ->  (not (each))"),
        ("left-out", "self.tell(found, wait=True)  ->  pass"),
        ("flipped", "True  ->  False"),
        ("without-a", "a and b  ->  ((b))"),
        ("without-b", "a and b  ->  ((a))"),
    }


def test_each_is_planted_by_its_name_and_taken_back():
    every = list(mutants(MODULE))
    assert len({each.name for each in every}) == len(every) > 20
    for each in every:
        function = _function(__import__(MODULE, fromlist=["_"]), each.edit.function.partition(":")[2])
        before = function.__code__
        with planted([defect(each.name)]):
            assert function.__code__ is not before
        assert function.__code__ is before


@pytest.mark.parametrize(
    "name", ["mutant:", "mutant:tagwire.records.batch:next_sequence@99:0:turned", "mutant:nowhere", "nothing-at-all"]
)
def test_a_name_that_stands_for_nothing_is_refused(name):
    with pytest.raises(PlantError, match=re.escape(name)):
        defect(name)

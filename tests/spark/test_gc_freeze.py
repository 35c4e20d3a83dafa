import gc
import sys
from types import ModuleType

import pytest

from tagwire.spark import gc_freeze


@pytest.fixture(autouse=True)
def nothing_is_frozen():
    """What the suite has frozen is frozen again for the tests after these."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def in_a_worker(monkeypatch):
    """As in a task of Spark's, before anything was frozen."""
    monkeypatch.setattr(gc_freeze, "_modules", 0)
    monkeypatch.setattr(gc_freeze.TaskContext, "get", lambda: object())


def test_a_worker_does_not_collect_again_what_its_first_task_loaded(in_a_worker):
    assert list(gc_freeze.freezing_gc(iter([1, 2]))) == [1, 2]
    assert gc.get_freeze_count() > 1000


def test_a_worker_that_loads_nothing_more_does_not_freeze_again(in_a_worker):
    gc_freeze.freeze_gc()
    gc.unfreeze()
    gc_freeze.freeze_gc()
    assert gc.get_freeze_count() == 0


def test_a_worker_that_loads_more_freezes_again(in_a_worker, monkeypatch):
    gc_freeze.freeze_gc()
    gc.unfreeze()
    monkeypatch.setitem(sys.modules, "loaded_by_a_later_task", ModuleType("loaded_by_a_later_task"))
    gc_freeze.freeze_gc()
    assert gc.get_freeze_count() > 1000


def test_outside_of_a_worker_nothing_is_frozen(monkeypatch):
    monkeypatch.setattr(gc_freeze, "_modules", 0)
    gc_freeze.freeze_gc()
    assert gc.get_freeze_count() == 0

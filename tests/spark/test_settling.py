import gc
import sys
from types import ModuleType

import pytest

from tagwire.spark import settling


@pytest.fixture
def in_a_worker(monkeypatch):
    """As in a task of Spark's, before anything was hidden from the collector."""
    monkeypatch.setattr(settling, "_modules", 0)
    monkeypatch.setattr(settling.TaskContext, "get", lambda: object())
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_a_worker_does_not_collect_again_what_its_first_task_loaded(in_a_worker):
    assert list(settling.settled(iter([1, 2]))) == [1, 2]
    assert gc.get_freeze_count() > 1000


def test_a_worker_that_loads_nothing_more_does_not_settle_again(in_a_worker):
    settling.settle()
    gc.unfreeze()
    settling.settle()
    assert gc.get_freeze_count() == 0


def test_a_worker_that_loads_more_settles_again(in_a_worker, monkeypatch):
    settling.settle()
    gc.unfreeze()
    monkeypatch.setitem(sys.modules, "loaded_by_a_later_task", ModuleType("loaded_by_a_later_task"))
    settling.settle()
    assert gc.get_freeze_count() > 1000


def test_outside_of_a_worker_the_collector_keeps_all_in_sight(monkeypatch):
    monkeypatch.setattr(settling, "_modules", 0)
    gc.unfreeze()
    settling.settle()
    assert gc.get_freeze_count() == 0

"""What a broker is found to keep: what its objects hold and count, and nothing of who looks."""

from __future__ import annotations

from tagwire.broker.storage import log_lock

from .keeping import kept_by


class Counted:
    __module__ = "tagwire.counted"

    def __init__(self, *held):
        self.held, self.count = list(held), 7


def test_collections_and_whole_numbers_of_own_objects_are_counted_once():
    inner = Counted()
    assert kept_by(Counted(inner, inner)) == {"Counted.held": 2, "Counted.count": 14}


def test_a_lock_that_a_thread_holds_at_that_moment_counts_for_nothing(monkeypatch):
    monkeypatch.setattr(log_lock, "CHECKED", True)
    lock = log_lock.log_lock()
    with lock:
        assert kept_by(Counted(lock)) == {"Counted.held": 1, "Counted.count": 7}

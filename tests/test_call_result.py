"""What one thread waits for and another settles."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tagwire.call_result import CallResult


def test_who_waits_goes_on_when_another_thread_has_given_it() -> None:
    called: CallResult[int] = CallResult()
    threading.Timer(0.05, called.give, (7,)).start()
    assert called.wait(30)
    assert called.result() == 7


def test_it_raises_what_it_is_failed_with() -> None:
    called: CallResult[int] = CallResult()
    called.fail(KeyError("k"))
    assert called.wait()
    with pytest.raises(KeyError, match="k"):
        called.result()


def test_a_wait_is_over_in_time_and_may_be_begun_again() -> None:
    called: CallResult[None] = CallResult()
    assert not called.wait(0.01)
    assert not called.wait(-1.0)
    called.give(None)
    assert called.wait(0.0)
    assert called.wait(threading.TIMEOUT_MAX * 2)


class Failed(Exception):
    """One that can be referred to weakly."""


def test_an_error_that_was_raised_is_gone_with_who_caught_it() -> None:
    def raised() -> weakref.ref[BaseException]:
        called: CallResult[None] = CallResult()
        called.fail(Failed())
        try:
            called.result()
        except Failed as error:
            return weakref.ref(error)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        assert raised()() is None
    finally:
        gc.enable()

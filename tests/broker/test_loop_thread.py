"""What a program asks of a broker's thread while it, or another thread, stops that."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from tagwire.broker.loop_thread import LoopThread
from tagwire.errors import TagwireError


async def three():
    return 3


def test_who_asks_what_has_stopped_is_told_so():
    thread = LoopThread(nullcontext())
    assert thread.call(three()) == 3
    thread.stop()
    with pytest.raises(TagwireError, match="not running"):
        thread.call(three())


def test_who_waits_for_what_stops_is_told_so():
    thread, has_begun = LoopThread(nullcontext()), threading.Event()

    async def for_ever():
        has_begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor() as pool:
        asked = pool.submit(thread.call, for_ever())
        assert has_begun.wait(20)
        thread.stop()
        with pytest.raises(TagwireError, match="stopped meanwhile"):
            asked.result(20)


def test_a_service_that_does_not_begin_leaves_no_thread(monkeypatch):
    begun, release = set(threading.enumerate()), LoopThread._release

    class Refused:
        async def __aenter__(self):
            raise TagwireError("no")

        async def __aexit__(self, *_):
            return None

    def slowly(thread):
        time.sleep(0.2)
        release(thread)

    monkeypatch.setattr(LoopThread, "_release", slowly)
    with pytest.raises(TagwireError, match="no"):
        LoopThread(Refused())
    assert set(threading.enumerate()) <= begun


def test_who_asks_after_the_last_step_of_the_loop_does_not_wait_for_ever(monkeypatch):
    asked = []

    def run_and_be_asked(main):
        loop, scheduled = asyncio.new_event_loop(), threading.Event()
        loop.run_until_complete(main)
        schedule = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *call: (schedule(*call), scheduled.set())
        asked.append(pool.submit(thread.call, three()))
        assert scheduled.wait(20)
        loop.close()

    monkeypatch.setattr("tagwire.broker.loop_thread.run", run_and_be_asked)
    with ThreadPoolExecutor() as pool:
        thread = LoopThread(nullcontext())
        thread.stop()
        with pytest.raises(TagwireError, match="stopped meanwhile"):
            asked[0].result(20)

"""The simulated world: what it decides, what it finds, and that a seed decides all of it."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = list(range(30))


@cache
def _stories(**environment: str) -> subprocess.Popen[str]:
    """A process in which the standard library is replaced, and which forks for each story."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    begun = subprocess.Popen(
        [sys.executable, "-m", "tests.simulation.world_stories"],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(begun.kill)
    return begun


def _told(name: str, seed: int = 1, **environment: str) -> dict[str, Any]:
    """What a story tells."""
    stories = _stories(**environment)
    assert stories.stdin is not None
    assert stories.stdout is not None
    stories.stdin.write(f"{name} {seed}\n")
    stories.stdin.flush()
    told: dict[str, Any] = json.loads(stories.stdout.readline())
    assert "failed" not in told, told["failed"]
    return told


_first = cache(_told)


def test_threads_take_turns_by_the_seed() -> None:
    orders = []
    for seed in range(1, 4):
        told = _first("threads", seed)["given"]
        assert told["taken"] == [0] * 4 + [1] * 4 + [2] * 4
        assert told["now"] == 1.0
        orders.append(tuple(told["order"]))
    assert len(set(orders)) > 1


def test_who_lets_go_of_a_lock_may_give_way_to_who_waits_for_it_where_a_world_says_so() -> None:
    usually, there = _first("a_lock_that_is_wanted")["given"]
    assert there < 60 < usually


def test_timers_and_timeouts_of_asyncio_take_simulated_time() -> None:
    assert _first("loops")["given"] == [[0, 2, 4, 6, 8], 7.0]


def test_who_sleeps_for_less_than_a_tick_lets_time_pass() -> None:
    assert max(_first("less_than_a_tick")["given"]) <= 2


def test_what_is_drawn_at_random_is_the_seeds_and_the_processs() -> None:
    first, second = _first("chance")["given"]
    assert not {*map(str, first)} & {*map(str, second)}
    assert _told("chance")["given"] == [first, second]
    assert _first("chance", 2)["given"][0][:3] != first[:3]


def test_a_deadlock_is_told_with_the_stack_of_every_thread() -> None:
    kind, text = _first("a_lost_wakeup")["error"]
    assert kind == "Deadlock"
    assert text.count("with locks[1 - first]") == 2
    assert "main#1/the other waits for a lock" in text


def test_a_busy_loop_is_told_with_its_stack() -> None:
    kind, text = _first("a_spin")["error"]
    assert kind == "BusyLoop"
    assert "in a_spin" in text


def test_a_world_that_goes_on_for_ever_is_ended() -> None:
    kind, text = _first("an_endless_wait")["error"]
    assert kind == "TooLong"
    assert "in an_endless_wait" in text


def test_threads_and_files_that_a_process_leaves_are_told() -> None:
    of_process, of_world = _first("a_leak")["given"]
    assert of_process == ["thread careless#1/forgotten", "file /file"]
    assert of_world == [f"careless#1 left {leak}" for leak in of_process]


def test_a_killed_process_takes_no_further_step_and_may_begin_again() -> None:
    assert _first("a_kill")["given"] == ["alive"] * 5 + ["victim#1 was killed", "again"]


def test_a_paused_process_does_nothing_meanwhile() -> None:
    assert _first("a_pause")["given"] == [100.5, 1.0]


def test_the_wall_clock_of_one_process_jumps() -> None:
    assert _first("a_jump")["given"] == [[-3590.0, 10.0], [10.0, 10.0]]


def test_async_clients_and_a_broker_run_in_the_world() -> None:
    told = _first("async_clients")["given"]
    assert told == {"produce": None, "read": RECORDS, "leaks": [], "broker leaks": [], "errors": []}


@pytest.mark.parametrize("name", ["blocking_clients", "a_cluster"])
def test_blocking_clients_run_in_the_world(name: str) -> None:
    told = _first(name)["given"]
    assert told["consume"] == told["read"] == RECORDS
    assert told["leaks"] == told["broker leaks"] == told["errors"] == []


def test_what_a_broker_acknowledged_stays_when_it_is_killed_at_any_step() -> None:
    kills = 0
    for seed in range(1, 4):
        told = _first("broker_kills", seed)["given"]
        assert told["acknowledged"] == RECORDS
        assert told["found"] == RECORDS
        kills += told["kills"]
    assert kills >= 3


def test_a_member_that_is_paused_for_longer_than_its_session_comes_back() -> None:
    told = _first("a_paused_client")["given"]
    assert told["found"] == RECORDS
    assert told["leaks"] == told["errors"] == []


@pytest.mark.parametrize("name", ["async_clients", "a_cluster", "broker_kills", "a_paused_client"])
def test_one_seed_gives_one_trace_whatever_strings_hash_to_and_kernels_are(name: str) -> None:
    first = _first(name)
    assert first["lines"] > 400
    assert _told(name, PYTHONHASHSEED="2", TAGWIRE_PURE="1") == first
    assert _first(name, 2)["digest"] != first["digest"]

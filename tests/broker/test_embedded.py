"""A broker in a program that forgets to stop it: it stops, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BEGIN = """
import gc, os, sys, threading, time
from pathlib import Path
from tagwire.broker import Broker
from tagwire.client import Producer

def left():
    return [path.name for path in Path(os.environ["TMPDIR"]).glob("tagwire-broker-*")]

def used():
    broker = Broker()
    broker.start()
    with Producer(broker.bootstrap) as producer:
        producer.send("t", b"v").result()
    assert len(left()) == 1
    return broker

def wait_until(holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
"""


def run(tmp_path, program, *options):
    """A program's return code and what it said on stderr; and what it left behind."""
    command = [sys.executable, *options, "-c", BEGIN + program]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr, [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("broker = used()", 0),
        ("broker = used(); sys.exit(3)", 3),
        ("kept = []; thread = threading.Thread(target=lambda: kept.append(used())); thread.start(); thread.join()", 0),
        ("kept = []; thread = threading.Thread(target=lambda: kept.append(used()), daemon=True); thread.start();"
         "wait_until(lambda: kept)", 0),
        ("first = used(); first.stop(); second = used()", 0),
    ],
)  # fmt: skip
def test_a_program_that_ends_leaves_nothing_of_a_broker_that_was_never_stopped(tmp_path, program, code):
    assert run(tmp_path, program) == (code, "", [])


def test_so_does_one_that_fails(tmp_path):
    code, said, left = run(tmp_path, "broker = used(); raise ValueError('of the program')")
    assert (code, left) == (1, [])
    assert said.strip().endswith("ValueError: of the program")
    assert said.count("Traceback") == 1


@pytest.mark.parametrize("forget", ["del broker", "broker.itself = broker; del broker; gc.collect()"])
def test_a_broker_that_nobody_knows_any_more_stops_with_a_warning(tmp_path, forget):
    program = f"""
broker = used()
{forget}
wait_until(lambda: not left() and "tagwire-broker" not in [thread.name for thread in threading.enumerate()])
"""
    code, said, left = run(tmp_path, program, "-W", "always::ResourceWarning")
    assert (code, left) == (0, [])
    assert said.count(" ResourceWarning: ") == 1
    assert said.count("a broker on 127.0.0.1:") == 1
    assert "was never stopped" in said


def test_a_broker_that_was_stopped_warns_of_nothing(tmp_path):
    program = """
with Broker() as broker:
    pass
try:
    Broker(fsync="sometimes")
except Exception:
    pass
del broker
gc.collect()
"""
    assert run(tmp_path, program, "-W", "always::ResourceWarning") == (0, "", [])


def test_a_process_that_is_forked_off_takes_nothing_away_when_it_ends(tmp_path):
    program = """
broker = used()
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
assert len(left()) == 1
with Producer(broker.bootstrap) as producer:
    producer.send("t", b"v").result()
broker.stop()
"""
    code, said, left = run(tmp_path, program)
    assert (code, said, left) == (0, "", [])

"""A command that is interrupted, at whatever moment, leaves no process behind: no Java, and no worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tagwire.client import Admin, NewTopic

from ..limits import stretch
from .killing import kill
from .log_files import LogDirectory
from .preloaded import environment

pytestmark = pytest.mark.spark

LIMIT = 120
"""Seconds that a command may take to come to a moment, on a busy machine."""

MOMENTS: dict[str, Callable[[list[str]], bool]] = {
    "something was started": lambda found: len(found) > 1,
    "Java starts": lambda found: any("SparkSubmit" in one for one in found),
    "a job runs": lambda found: any("pyspark.daemon" in one for one in found),
}


def _processes(session: int) -> list[str]:
    """The command lines of what lives in a session; what is dead and waits to be counted is not listed."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for line in listed.splitlines():
        pid, state, arguments = line.split(maxsplit=2)
        try:
            if os.getsid(int(pid)) == session and not state.startswith("Z"):
                found.append(arguments)
        except ProcessLookupError:
            continue
    return found


def _heeds_signals() -> None:
    """Undoes what `nohup`, or a shell's `&`, has told the tests: a program that is to ignore a signal goes on to."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def command(broker, topic, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """A replay that takes minutes, in a session of its own."""
    LogDirectory(tmp_path, "flights-0").numbered(500)
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(f"{topic}-again", num_partitions=1)])
    arguments = ["--files", str(tmp_path), "--of", "flights", "--rate", "1", "--bootstrap", broker.bootstrap]
    running = subprocess.Popen(
        [sys.executable, "-m", "tagwire", "replay", f"{topic}-again", *arguments],
        env=environment(),
        start_new_session=True,
        preexec_fn=_heeds_signals,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield running
    kill(running)
    running.communicate()


def _wait(what: str, come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT * stretch()
    while not come():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize(
    "moment", [pytest.param(name, marks=pytest.mark.long if name == "a job runs" else ()) for name in MOMENTS]
)
def test_ctrl_c_ends_a_command_and_all_that_it_has_started(command, moment):
    _wait(moment, lambda: MOMENTS[moment](_processes(command.pid)))
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does
    assert command.wait(LIMIT * stretch()) == 130
    assert _processes(command.pid) == []
    assert command.communicate() == ("", "tagwire: interrupted\n")


@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGTERM], 143),
        pytest.param([signal.SIGHUP], 129, marks=pytest.mark.nightly),
        ([signal.SIGINT, signal.SIGINT], 130),
        ([signal.SIGKILL], -signal.SIGKILL),
    ],
)
def test_java_ends_with_its_command_whatever_ends_that(command, signals, code):
    _wait("Java starts", lambda: MOMENTS["Java starts"](_processes(command.pid)))
    for number in signals:
        command.send_signal(number)
    assert command.wait(LIMIT * stretch()) == code
    _wait("its processes end", lambda: _processes(command.pid) == [])


@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.long
def test_a_session_that_is_interrupted_ends_its_java_and_the_next_starts_another(tmp_path):
    program = f"""
import os
from pathlib import Path
from tagwire.spark.session import session

log = Path({str(tmp_path)!r}, "spark.log")
pids = []
for interrupted in (True, False):
    try:
        with session(log) as spark:
            pids.append(spark.sparkContext._gateway.proc.pid)
            if interrupted:
                raise KeyboardInterrupt
            assert spark.range(3).count() == 3
    except KeyboardInterrupt:
        try:
            os.kill(pids[0], 0)
        except ProcessLookupError:
            print("gone")
print(len(set(pids)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("gone\n2\n", 0), done.stderr


def test_a_java_that_ends_in_the_middle_of_a_call_prints_no_traceback():
    """As where a landing has been told to stop: py4j logs that as nobody's, and gives the caller an error as well."""
    ended = subprocess.run(
        [sys.executable, "-c", _JAVA_ENDS], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    assert (ended.stdout, ended.stderr) == ("x\n", "")


_JAVA_ENDS = """
import socket
import threading
from py4j.java_gateway import GatewayClient
from tagwire.spark.session import be_quiet_about_java

def java():
    connection, _ = listener.accept()
    connection.recv(100)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    connection.close()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=java, daemon=True).start()
be_quiet_about_java()
print(GatewayClient(port=listener.getsockname()[1]).send_command("a command", retry=False))
"""

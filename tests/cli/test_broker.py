"""`tagwire broker`: runs until it is told to stop, and says in one line why it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tagwire.broker import Broker
from tagwire.client import Client


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_it_says_where_it_listens_serves_and_stops_cleanly_at_a_signal(run, tmp_path, number):
    data = tmp_path / "data"
    with subprocess.Popen(
        [sys.executable, "-m", "tagwire", "broker", "--data", data, "--listen", "127.0.0.1:0", "--partitions", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        ready = process.stdout.readline()
        address = ready.removeprefix("listening on ").partition(",")[0]
        assert ready == f"listening on {address}, data in {data}\n"
        assert run("topics", "create", "t", "--bootstrap", address).code == 0
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    with Broker(data) as broker, Client(broker.bootstrap) as client:
        assert list(client.metadata().topics) == ["t"]


def test_a_directory_that_is_not_ours_is_named_and_left_alone(run, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    ran = run("broker", "--data", tmp_path, "--listen", "127.0.0.1:0")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("tagwire: ")
    assert str(tmp_path) in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_directory_or_an_address_in_use_is_named(run, tmp_path):
    with Broker(tmp_path / "used") as broker:
        address = broker.bootstrap
        same_data = run("broker", "--data", tmp_path / "used", "--listen", "127.0.0.1:0")
        same_address = run("broker", "--data", tmp_path / "free", "--listen", address)
    assert (same_data.code, same_data.out) == (same_address.code, same_address.out) == (1, "")
    assert str(tmp_path / "used") in same_data.err
    assert address in same_address.err
    assert same_data.err.count("\n") == same_address.err.count("\n") == 1

"""What a program leaves open is told when it is collected, with what to write; what it closes is not."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Client, Consumer, Producer, Reader


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics("t")
        yield broker.bootstrap


def told(function: Callable[[], object]) -> list[str]:
    """What is warned of while `function` runs and what it made is collected."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
        gc.collect()
    assert all(each.category is ResourceWarning for each in caught)
    return [str(each.message) for each in caught]


def clients() -> list[tuple[str, Callable[[str], Any]]]:
    def produced(bootstrap: str) -> Producer:
        producer = Producer(bootstrap)
        producer.send("t", b"v")
        producer.flush()
        return producer

    def used(bootstrap: str) -> Client:
        client = Client(bootstrap)
        client.metadata()
        return client

    def consumed(bootstrap: str) -> Consumer:
        consumer = Consumer(bootstrap, group="unclosed")
        consumer.subscribe("t")
        consumer.poll(0.1)
        return consumer

    def administered(bootstrap: str) -> Admin:
        admin = Admin(bootstrap)
        admin.list_topics()
        return admin

    return [
        ("Client", used),
        ("Admin", administered),
        ("Producer", produced),
        ("Reader", lambda bootstrap: Reader(bootstrap, "t")),
        ("Consumer", consumed),
    ]


@pytest.mark.parametrize(("kind", "make"), clients(), ids=[row[0] for row in clients()])
def test_what_was_never_closed_is_told_once_with_what_to_write(
    bootstrap: str, kind: str, make: Callable[[str], Any]
) -> None:
    assert told(lambda: make(bootstrap)) == [
        f"a {kind} of {bootstrap} was never closed: write `with {kind}(...) as {kind.lower()}:`, "
        "or call its close() when it is done"
    ]


@pytest.mark.parametrize(("kind", "make"), clients(), ids=[row[0] for row in clients()])
def test_in_a_cycle_too(bootstrap: str, kind: str, make: Callable[[str], Any]) -> None:
    def left() -> None:
        holder = [make(bootstrap)]
        holder.append(holder)

    assert [text.partition(" was never closed")[0] for text in told(left)] == [f"a {kind} of {bootstrap}"]


@pytest.mark.parametrize(("kind", "make"), clients(), ids=[row[0] for row in clients()])
def test_what_was_closed_is_not_told(bootstrap: str, kind: str, make: Callable[[str], Any]) -> None:
    def closed() -> None:
        with make(bootstrap):
            pass

    assert told(closed) == []


def test_what_uses_another_s_client_leaves_nothing_open(bootstrap: str) -> None:
    def lent() -> None:
        with Client(bootstrap) as client:
            Admin(client).list_topics()
            next(Reader(client, {"t": 0}, stop_at_end=True), None)

    assert told(lent) == []


def test_what_could_not_be_made_leaves_nothing_open(bootstrap: str) -> None:
    def refused() -> None:
        for make in (
            lambda: Client("nowhere"),
            lambda: Producer(bootstrap, acks="2"),
            lambda: Reader(bootstrap, {("t", 7): "latest"}),
            lambda: Reader(bootstrap, "t", batch_rows=0),
        ):
            with pytest.raises(Exception, match=r"nowhere|acks|t-7|batch_rows"):
                make()

    assert told(refused) == []


def test_a_client_that_was_never_connected_has_nothing_to_close() -> None:
    assert told(lambda: (Client("127.0.0.1:1"), Admin("127.0.0.1:1"))) == []


FORKED = [
    ("Producer", "left.send('t', b'v').result()"),
    ("Client", "left.metadata()"),
    ("Admin", "left.list_topics()"),
    ("Consumer", "left.assign('t'); left.poll(0)"),
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("kind", "use"), FORKED, ids=[row[0] for row in FORKED])
def test_a_forked_process_does_not_speak_of_what_its_parent_has(bootstrap: str, kind: str, use: str) -> None:
    program = f"""
import os, sys
from tagwire.client import {kind}
left = {kind}({bootstrap!r})
{use}
child = os.fork()
if child == 0:
    del left
    os._exit(0)
_, status = os.waitpid(child, 0)
{use}
left.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "use"), FORKED, ids=[row[0] for row in FORKED])
def test_what_is_collected_when_the_interpreter_ends_prints_no_traceback(bootstrap: str, kind: str, use: str) -> None:
    program = f"""
import tagwire.errors
from tagwire.client import {kind}
left = {kind}({bootstrap!r})
{use}
tagwire.errors.kept = left  # modules go in the reverse order in which they came
del left
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")

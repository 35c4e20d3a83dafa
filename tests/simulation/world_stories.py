"""Small worlds that the tests of the world run, each in a process of its own, forked from this one.

`python -m tests.simulation.world_stories` takes lines of "NAME SEED", and prints what each saw as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.simulation.world.installed import install

install()

import asyncio  # noqa: E402
import os  # noqa: E402
import queue  # noqa: E402
import random  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import uuid  # noqa: E402

from tagwire.client import Admin, Consumer, NewTopic, Producer, Reader  # noqa: E402
from tagwire.client.aio import AsyncProducer, AsyncReader  # noqa: E402
from tagwire.errors import TagwireError  # noqa: E402
from tests.simulation.world.brokers import BrokerProcess  # noqa: E402
from tests.simulation.world.errors import Killed, WorldError  # noqa: E402
from tests.simulation.world.world import World  # noqa: E402

DATA = Path("/file")
RECORDS = 30


# Threads, clocks, loops ----------------------------------------------------------------------------------------------


def threads(world: World) -> Any:
    """Three threads take turns at a lock, a queue and the clock."""
    done: list[tuple[int, int, float]] = []
    lock = threading.Lock()
    work: queue.Queue[int] = queue.Queue()

    def act(number: int) -> None:
        for turn in range(4):
            with lock:
                done.append((number, turn, time.monotonic()))
            work.put(number)
            time.sleep(0.25)

    begun = [threading.Thread(target=act, args=(number,)) for number in range(3)]
    for thread in begun:
        thread.start()
    taken = sorted(work.get() for _ in range(12))
    for thread in begun:
        thread.join()
    return {"order": [number for number, _, _ in done], "taken": taken, "now": world.now}


def a_lock_that_is_wanted(world: World) -> Any:
    """How often whoever lets go of a lock that others wait for has it again before them, in a world and in another."""
    again: list[int] = []
    for gives_way in (0.0, 1.0):
        world.scheduler.gives_way = gives_way
        lock, taken = threading.Lock(), [0]

        def act(number: int, lock: Any = lock, taken: list[int] = taken) -> None:
            for _ in range(50):
                with lock:
                    taken.append(number)
                    time.sleep(0.01)

        begun = [threading.Thread(target=act, args=(number,)) for number in (1, 2, 3)]
        for thread in begun:
            thread.start()
        for thread in begun:
            thread.join()
        again.append(sum(before == after for before, after in pairwise(taken[:100])))
    return again


def loops(world: World) -> Any:
    """Timers, executors and timeouts of asyncio take simulated time."""

    async def work() -> Any:
        begin = time.monotonic()
        doubled = await asyncio.gather(*(asyncio.to_thread(lambda n=n: n * 2) for n in range(5)))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(3600), 7)
        return doubled, time.monotonic() - begin

    return asyncio.run(work())


def less_than_a_tick(world: World) -> Any:
    """Sleeps what is left until a time between two ticks of the clock, again and again, and how often it has to."""

    async def work() -> list[int]:
        loop, turns = asyncio.get_running_loop(), []
        for number in range(20):
            until = loop.time() + (number + 0.4) * 1e-9
            turns.append(0)
            while (left := until - loop.time()) > 0:
                await asyncio.sleep(left)
                turns[-1] += 1
        return turns

    return asyncio.run(work())


def chance(world: World) -> Any:
    """What is drawn at random is the process's."""

    def draw() -> Any:
        return [os.urandom(4).hex(), str(uuid.uuid4()), random.Random().random(), random.random()]

    return [world.spawn("first", draw).result(), world.spawn("second", draw).result()]


def a_lost_wakeup(world: World) -> Any:
    """Each of two threads holds the lock that the other waits for."""
    locks = threading.Lock(), threading.Lock()

    def take(first: int) -> None:
        with locks[first]:
            time.sleep(1)
            with locks[1 - first]:
                pass

    other = threading.Thread(target=take, args=(1,), name="the other")
    other.start()
    take(0)


def a_spin(world: World) -> Any:
    while time.monotonic() < 1e9:
        time.sleep(0)


def an_endless_wait(world: World) -> Any:
    while True:
        time.sleep(3600)


def a_leak(world: World) -> Any:
    def careless() -> None:
        threading.Thread(target=lambda: time.sleep(1000), name="forgotten", daemon=True).start()
        world.disk("careless").open(DATA, write=True)

    process = world.spawn("careless", careless)
    process.result()
    return process.leaks, world.leaks


# Processes -----------------------------------------------------------------------------------------------------------


def a_kill(world: World) -> Any:
    """A process that is killed takes no further step, and unwinds nothing."""
    seen: list[str] = []

    def live() -> None:
        try:
            while True:
                seen.append("alive")
                time.sleep(1)
        finally:
            seen.append("unwound")

    process = world.spawn("victim", live)
    time.sleep(4.5)
    process.kill()
    time.sleep(10)
    try:
        process.result()
    except Killed as error:
        seen.append(str(error))
    again = world.spawn("victim", lambda: "again").result()
    return [*seen, again]


def a_pause(world: World) -> Any:
    """A process that is paused does nothing, and then sees that time has passed."""
    seen: list[float] = []

    def live() -> None:
        for _ in range(3):
            seen.append(time.monotonic())
            time.sleep(1)

    process = world.spawn("sleeper", live)
    time.sleep(0.5)
    process.pause(100)
    process.join()
    return [round(second - first, 6) for first, second in pairwise(seen)]


def a_jump(world: World) -> Any:
    """Clocks of the wall jump for one process; the other clock goes on."""

    def live() -> Any:
        wall, steady = time.time(), time.monotonic()
        time.sleep(10)
        return round(time.time() - wall, 3), round(time.monotonic() - steady, 3)

    process, other = world.spawn("jumper", live), world.spawn("other", live)
    time.sleep(1)
    process.jump_wall_clock(-3600)
    return [process.result(), other.result()]


# Brokers and clients -------------------------------------------------------------------------------------------------


def async_clients(world: World) -> Any:
    broker = _started(world)

    async def produce() -> None:
        async with AsyncProducer(broker.bootstrap) as producer:
            for number in range(RECORDS):
                await producer.send("orders", b"%d" % number)
                await asyncio.sleep(0.1)

    async def read() -> list[int]:
        async with AsyncReader(broker.bootstrap, "orders", stop_at_end=True) as reader:
            return [int(record.value) async for record in reader.records()]

    return _ended(broker, _results(world, produce, read))


def blocking_clients(world: World) -> Any:
    return _ended(broker := _started(world), _blocking(world, broker))


def a_cluster(world: World) -> Any:
    return _ended(broker := _started(world, nodes=3), _blocking(world, broker))


def _blocking(world: World, broker: BrokerProcess) -> Any:
    def create() -> None:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 3)])

    def produce() -> None:
        with Producer(broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number, key=b"%d" % number)
                time.sleep(0.1)

    def consume() -> list[int]:
        found: list[int] = []
        with Consumer(broker.bootstrap, group="readers", offset_reset="earliest") as consumer:
            consumer.subscribe("orders")
            while len(found) < RECORDS:
                found += [int(record.value) for record in consumer.poll(1.0)]
        return sorted(found)

    def read() -> list[int]:
        with Reader(broker.bootstrap, "orders", stop_at_end=True) as reader:
            return sorted(int(record.value) for record in reader.records())

    return _results(world, create, produce, consume, read)


def broker_kills(world: World) -> Any:
    """A broker is killed at switch points of all kinds, now and then with its machine; what was acknowledged stays."""
    broker = _started(world)
    chosen = world.random_of("kills")
    acknowledged: list[int] = []

    def produce() -> None:
        with Producer(broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number).result()
                acknowledged.append(number)
                time.sleep(1)

    producing = world.spawn("produce", produce)
    kills = 0
    while not producing.join(1.0):
        assert broker.process is not None
        broker.process.kill_after(chosen.randint(1, 400))
        if broker.process.join(20.0):
            kills += 1
        elif chosen.random() < 0.5:
            broker.lose_power()
            kills += 1
        else:
            broker.process.dies_at = 0
            continue
        broker.start()
        if not broker.wait_until_ready(60.0):
            assert not broker.is_running
            broker.start()
            broker.wait_until_ready()
        time.sleep(chosen.random() * 3)
    producing.result()

    def read() -> list[int]:
        with Reader(broker.bootstrap, "orders", stop_at_end=True) as reader:
            return [int(record.value) for record in reader.records()]

    found = world.spawn("read", read).result()
    return {**_ended(broker, {}), "found": found, "acknowledged": acknowledged, "kills": kills}


def a_paused_client(world: World) -> Any:
    """A member that is paused for longer than its session comes back, and the group reads on."""
    broker = _started(world)
    found: dict[str, list[int]] = {"first": [], "second": []}
    is_over = threading.Event()

    def consume(name: str) -> None:
        with Consumer(
            broker.bootstrap, group="readers", offset_reset="earliest", session_timeout=6.0, heartbeat_interval=2.0
        ) as consumer:
            consumer.subscribe("orders")
            while not is_over.is_set():
                try:
                    found[name] += [int(record.value) for record in consumer.poll(1.0)]
                except TagwireError:
                    time.sleep(1)

    def produce() -> None:
        with Producer(broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("orders", b"%d" % number)
                time.sleep(2)

    members = [world.spawn(name, consume, name) for name in found]
    producing = world.spawn("produce", produce)
    time.sleep(15)
    members[0].pause(40)
    producing.result()
    time.sleep(60)
    is_over.set()
    for member in members:
        member.result()
    return _ended(broker, {"found": sorted({*found["first"], *found["second"]}), "leaks": _leaks(*members, producing)})


def _started(world: World, **options: Any) -> BrokerProcess:
    broker = BrokerProcess(world, num_partitions=1, **options)
    broker.start()
    broker.wait_until_ready()
    return broker


def _results(world: World, *functions: Callable[[], Any]) -> dict[str, Any]:
    processes = []
    for function in functions:
        processes.append(process := world.spawn(function.__name__, function))
        process.result()
    return {**{process.name: process.result() for process in processes}, "leaks": _leaks(*processes)}


def _leaks(*processes: Any) -> list[str]:
    return [leak for process in processes for leak in process.leaks]


def _ended(broker: BrokerProcess, told: dict[str, Any]) -> dict[str, Any]:
    assert broker.stop()
    assert broker.process is not None
    return {**told, "broker leaks": broker.process.leaks, "errors": [repr(error) for error in broker.process.errors]}


def tell(name: str, seed: int) -> dict[str, Any]:
    """What a story saw, and how long it was."""
    world = World(seed, most_seconds=100 * 3600)
    told: dict[str, Any] = {}
    try:
        told["given"] = world.run(lambda: globals()[name](world))
    except WorldError as error:
        told["error"] = [type(error).__name__, str(error)]
    except BaseException:
        told["failed"] = traceback.format_exc()
    counts = {"lines": world.lines, "steps": world.scheduler.steps, "seconds": world.now}
    return {**told, **counts, "digest": world.digest()}


def main() -> None:
    gc.freeze()
    for order in sys.stdin:
        name, seed = order.split()
        process = os.fork()
        if process == 0:
            sys.stdout.write(json.dumps(tell(name, int(seed))) + "\n")
            sys.stdout.flush()
            os._exit(0)  # threads of processes that were killed are parked for ever
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()

"""A broker of Apache Kafka with all that tells what its clients ask: its request log, a tap before it, tcpdump behind
that, and its own counters."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, MavenError, classpath

from ..certificates import HOST
from .old_node import OldNode
from .peer import SOURCES, NotRunError
from .real_broker import RealBroker
from .real_node import PLAIN, SECONDS, RealNode, free_ports

Counts = dict[tuple[str, int], int]
"""{(API, version): requests}."""

ANY: Final = -1
"""The version of a count that is of all of them."""

WITHOUT_ZOOKEEPER: Final = (3, 3)
"""The release from which brokers did everything without it."""

_PARTS: Final = frozenset({"FetchConsumer", "FetchFollower"})
"""By these names Fetch is counted again."""

_LOG4J_1: Final = """
log4j.rootLogger=OFF
log4j.logger.kafka.request.logger={level}, requests
log4j.appender.requests=org.apache.log4j.FileAppender
log4j.appender.requests.File={log}
log4j.appender.requests.layout=org.apache.log4j.PatternLayout
log4j.appender.requests.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J_2: Final = """
rootLogger.level=OFF
appender.requests.type=File
appender.requests.name=requests
appender.requests.fileName={log}
appender.requests.layout.type=PatternLayout
appender.requests.layout.pattern=[%d] %p %m (%c)%n
logger.requests.name=kafka.request.logger
logger.requests.level={level}
logger.requests.appenderRef.requests.ref=requests
"""
_BINDINGS: Final = {
    "log4j.configuration": ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    "log4j2.configurationFile": ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
}
"""What brings a broker's log to the library of its release, which is set up by the property."""


@dataclass
class WatchedBroker:
    """One that runs.

    Attributes:
        node: the broker, whose own port is behind the tap.
        address: where clients go: the tap.
        log: its request log.
        tapped, dumped: the folders with what the tap and tcpdump wrote; `dumped` is None without tcpdump.
        jmx: the port where its counters are told.
    """

    node: RealNode
    address: str
    log: Path
    tapped: Path
    dumped: Path | None
    jmx: int

    def counts(self) -> Counts:
        """How many requests the broker has counted."""
        command = [
            "java",
            "-Xmx64m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            str(_compiled()),
            "RequestCounts",
            str(self.jmx),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr[-2000:]
        found: Counts = {}
        for line in done.stdout.splitlines():
            name, version, count = line.split()
            if name not in _PARTS:
                found[name, ANY if version == "null" else int(version)] = int(count)
        return found


def _compiled() -> Path:
    """The folder with the program that asks for the counters."""
    source, folder = SOURCES / "RequestCounts.java", CACHE / "classes" / "counts"
    made = folder / "RequestCounts.class"
    if not made.is_file() or made.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["javac", "-d", str(folder), str(source)], check=True, timeout=SECONDS)
    return folder


@contextmanager
def watched(release: str, folder: Path, *, level: str = "DEBUG") -> Iterator[WatchedBroker]:
    """A broker of a release, watched from its first request on.

    Args:
        level: of its request log: at TRACE it has bodies whole.

    Raises:
        NotRunError: something that this takes is not to be had.
    """
    broker = RealBroker.fetch(release)
    listen, jmx = free_ports(2)
    number = tuple(map(int, release.split(".")))
    node = (OldNode if number < WITHOUT_ZOOKEEPER else RealNode).alone(folder)
    node.settings = f"advertised.listeners={PLAIN}://{HOST}:{listen}\n"
    log = folder / "requests.log"
    own = [jar for jar in broker.jars if "log4j12" not in jar.name]  # of old ones, in the way of what is added
    jars = [*_logging(release, node, log, level), *own]
    node.options = (*node.options, *_remote(jmx))
    node.format(jars)
    with ExitStack() as stack:
        dumped = stack.enter_context(_tcpdump(node.ports[PLAIN], folder))
        stack.enter_context(node.running(jars))
        tapped = folder / "tapped"
        stack.enter_context(_tap(listen, node.address(), tapped))
        yield WatchedBroker(node, f"{HOST}:{listen}", log, tapped, dumped, jmx)


def _logging(release: str, node: RealNode, log: Path, level: str) -> Sequence[Path]:
    """Sets up the request log, and gives the jars that this takes."""
    old = int(release.partition(".")[0]) < 4
    name = "log4j.configuration" if old else "log4j2.configurationFile"
    path = node.folder / "log.properties"
    path.write_text((_LOG4J_1 if old else _LOG4J_2).format(log=log, level=level), encoding="utf-8")
    node.options = (f"-D{name}=file:{path}",)
    try:
        return classpath(_BINDINGS[name][1], [_BINDINGS[name]], [])
    except MavenError as error:
        raise NotRunError(f"{_BINDINGS[name][1]}: {error}") from None


def _remote(port: int) -> tuple[str, ...]:
    prefix = "-Dcom.sun.management.jmxremote"
    return (
        f"{prefix}.port={port}",
        f"{prefix}.host={HOST}",
        f"{prefix}.authenticate=false",
        f"{prefix}.ssl=false",
        f"-Djava.rmi.server.hostname={HOST}",
    )


@contextmanager
def _tap(port: int, upstream: str, out: Path) -> Iterator[None]:
    command = ["tap", "--listen", f"{HOST}:{port}", "--upstream", upstream, "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "tagwire", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"Listening on {HOST}:{port}.\n"
    try:
        yield
    finally:
        _interrupt(process)


@contextmanager
def _tcpdump(port: int, folder: Path) -> Iterator[Path | None]:
    """Captures packets of the loopback interface, where that is allowed."""
    program = shutil.which("tcpdump")
    if program is None:
        yield None
        return
    out = folder / "dumped"
    out.mkdir()
    command = [program, "-i", "lo", "-B", "16384", "-U", "-Z", "root", "-w", str(out / "lo.pcap"), "port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    listening = process.stderr.readline()
    try:
        yield out if "listening" in listening else None
    finally:
        time.sleep(0.2)  # what the kernel has not handed over yet
        _interrupt(process)


def _interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()

"""Published clients of many releases, each with the same little walk: produce, consume in a group, create a topic.

A walk's program is in walks/; what it needs is fetched from the client's own registry and kept under .cache/clients.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, MavenError, classpath, fetching, kafka

from tagwire.client import LATEST, Admin, Client, NewTopic, TopicPartition

from .peer import NotRunError

WALKS: Final = Path(__file__).parent / "walks"
SECONDS: Final = 40
FETCH_SECONDS: Final = 300
AT_A_TIME: Final = 4
RECORDS: Final = 20


@dataclass(frozen=True)
class Walked:
    """What came of a walk.

    Attributes:
        works: whether it came to its end, and its group committed what it read.
        said: the last that it printed.
    """

    works: bool
    said: str

    def __str__(self) -> str:
        return "works" if self.works else "breaks"


@dataclass(frozen=True)
class Walker:
    """A client of one release, ready to walk.

    Attributes:
        software: as people call it.
        version: of the client.
        command: the program and its first arguments.
        environment: what the program is told beside them.
        last: its last arguments.
    """

    software: str
    version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    last: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join((self.software, self.version, *self.last))

    @property
    def client_id(self) -> str:
        """By which observations are told to be its own."""
        return "-".join((self.software, self.version, *self.last))

    def walk(self, bootstrap: str, topic: str) -> Walked:
        """Walks on a broker that has the topic, with one partition and no records."""
        command = [*self.command, bootstrap, topic, self.client_id, *self.last]
        process = subprocess.Popen(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            printed = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            printed = process.communicate()[0] + f"\nno end within {SECONDS} seconds"
        return Walked(process.returncode == 0, "\n".join(printed.strip().splitlines()[-30:]))


def fetch(software: str, version: str, *last: str) -> Walker:
    """A client of one release; `last` is what its walk is told at the end.

    Raises:
        NotRunError: it, or what it runs on, is not to be had.
    """
    try:
        made = _MAKERS[software](software, version)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stdout or b"")[-400:].decode(errors="replace").strip()
        raise NotRunError(f"{software} {version} could not be fetched: {said}") from None
    return Walker(software, version, made[0], made[1], last)


_Made = tuple[tuple[str, ...], Mapping[str, str]]


def _python(software: str, version: str) -> _Made:
    wanted = [f"{software}=={version}"]
    if software == "aiokafka" and _number(version) < (0, 9):
        wanted.append("kafka-python==2.0.2")  # newer ones lack what it takes from there
    folder = _kept(software, version, lambda into: _pip("install", *wanted, "--target", str(into)))
    program = WALKS / f"{software.replace('-', '_')}.py"
    return (sys.executable, str(program)), {"PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore"}


def _librdkafka(software: str, version: str) -> _Made:
    """The library out of the wheel of confluent-kafka, of whichever Python that was for."""

    def unpack(into: Path) -> None:
        old = int(version.partition(".")[0]) < 2
        python = "--python-version 3.6 --abi cp36m" if old else "--python-version 3.11 --abi cp311"
        kinds = " ".join(f"--platform manylinux{kind}_{platform.machine()}" for kind in ("1", "2010", "2014", "_2_28"))
        chosen = f"{python} --implementation cp {kinds} --only-binary :all: --no-deps".split()
        _pip("download", f"confluent-kafka=={version}", "--dest", str(into), *chosen)
        (wheel,) = into.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(into)
        wheel.unlink()

    folder = _kept(software, version, unpack)
    (library,) = folder.glob("*confluent_kafka*/**/librdkafka*.so*")
    program = (sys.executable, str(WALKS / "librdkafka.py"), str(library))
    return program, {"LD_LIBRARY_PATH": str(library.parent)}


def _node(software: str, version: str) -> _Made:
    _needs("node", "npm")

    def install(into: Path) -> None:
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-optional")
        _run("npm", "install", *options, "--prefix", str(into), f"{software}@{version}")

    folder = _kept(software, version, install)
    program = WALKS / f"{software.replace('-', '_')}.js"
    return ("node", str(program)), {"NODE_PATH": str(folder / "node_modules")}


def _go(software: str, version: str) -> _Made:
    _needs("go")
    module = _MODULES[software]
    if software == "sarama" and _number(version) < (1, 39):
        module = "github.com/Shopify/sarama"  # before it moved

    def build(into: Path) -> None:
        text = (WALKS / software.replace("-", "_") / "main.go").read_text(encoding="utf-8")
        (into / "main.go").write_text(text.replace(_MODULES[software], module), encoding="utf-8")
        _run("go", "mod", "init", "walk", cwd=into)
        _run("go", "get", f"{module}@v{version}", cwd=into)
        _run("go", "mod", "tidy", cwd=into)
        _run("go", "get", f"{module}@v{version}", cwd=into)
        _run("go", "build", "-o", "walk", ".", cwd=into)

    return (str(_kept(software, version, build) / "walk"),), {}


def _java(software: str, version: str) -> _Made:
    _needs("java", "javac")
    try:
        jars = classpath(f"client-{version}", [kafka("kafka-clients", version)], [])
    except MavenError as error:
        raise NotRunError(f"Kafka {version}: {error}") from None
    path = ":".join(map(str, jars))

    def compile_on(into: Path) -> None:
        programs = ["Walk.java", *(["MakeTopic.java"] if _number(version) >= (0, 11) else [])]
        sources = [str(WALKS / name) for name in programs]
        _run("javac", "-nowarn", "-Xlint:none", "-d", str(into), "-cp", path, *sources)

    folder = _kept(software, version, compile_on)
    small = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return ("java", *small, "-cp", f"{folder}:{path}", "Walk"), {}


_MODULES: Final = {
    "sarama": "github.com/IBM/sarama",
    "franz-go": "github.com/twmb/franz-go",
    "kafka-go": "github.com/segmentio/kafka-go",
}
_MAKERS: Final[Mapping[str, Callable[[str, str], _Made]]] = {
    "kafka-python": _python,
    "aiokafka": _python,
    "librdkafka": _librdkafka,
    "kafkajs": _node,
    "kafka-node": _node,
    "sarama": _go,
    "franz-go": _go,
    "kafka-go": _go,
    "java": _java,
}


def _kept(software: str, version: str, make: Callable[[Path], object]) -> Path:
    """The folder of a client, made when it is asked for first."""
    folder = CACHE / "clients" / f"{software}-{version}"
    with fetching():
        if not folder.is_dir():
            draft = folder.with_name(folder.name + ".draft")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            make(draft)
            draft.rename(folder)
    return folder


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments)


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(
        command, cwd=cwd, check=True, timeout=FETCH_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _needs(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise NotRunError(f"{' and '.join(missing)}: not on the PATH")


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def walk_all(
    walkers: Sequence[Walker], bootstrap: str, again: Callable[[Walker], bool] = lambda walker: False
) -> dict[str, Walked]:
    """All of them on one broker, some at a time; by their names.

    Args:
        again: whether a walker that failed is to walk once more, alone: a walk has a time limit, which a busy machine
            may exceed.
    """
    with Client(bootstrap) as client:
        while not client.metadata(()).brokers:  # an old broker listens before it knows itself
            time.sleep(0.1)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            found = _walk(walkers, "first", client, bootstrap, pool.map)
        failed = [walker for walker in walkers if not found[walker.name].works and again(walker)]
        return found | _walk(failed, "again", client, bootstrap, map)


def _walk(
    walkers: Sequence[Walker], attempt: str, client: Client, bootstrap: str, each: Callable[..., Iterable[Walked]]
) -> dict[str, Walked]:
    """Each with a topic of its own. What a client says of its success is not taken for it: the broker is asked for the
    offset that its group committed."""
    if not walkers:
        return {}
    admin, topics = Admin(client), {walker.name: f"t-{attempt}-{walker.client_id}" for walker in walkers}
    admin.create_topics([NewTopic(topic) for topic in topics.values()])
    client.list_offsets({(topic, 0): LATEST for topic in topics.values()})  # which waits for their leaders
    found = {}
    for walker, walked in zip(walkers, each(lambda walker: walker.walk(bootstrap, topics[walker.name]), walkers)):
        topic = topics[walker.name]
        committed = admin.group_offsets(f"g-{topic}").get(TopicPartition(topic, 0)) if walked.works else None
        if walked.works and (committed is None or committed.offset != RECORDS):
            walked = replace(walked, works=False, said=f"its group committed {committed}")
        found[walker.name] = walked
    return found

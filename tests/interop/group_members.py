"""Members of one group, each a process by another client: it writes what it processed, and what it was assigned.

A member's arguments are: where the broker listens, topic, group, assignor, or `consumer` for the protocol of KIP-848,
and the file it writes to. In that, `= 0 3` says that it has these partitions now, every other line is a record's value.
It commits what it has written. With one more argument, another topic, it copies records there instead, in transactions
that commit its offsets too. At SIGTERM it leaves the group.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, Coordinates, MavenError, classpath, fetching, kafka

from ..limits import stretch
from .java_process import SMALL
from .peer import NotRunError

HERE: Final = Path(__file__).parent
RELEASE: Final = "4.4.0"
SECONDS: Final = 40
BUILD_SECONDS: Final = 300


def java(program: str = "Member", *beside: Coordinates) -> tuple[str, ...]:
    """The command of a member by Kafka's own client, or of another program in `members`, with what it needs beside it.

    Raises NotRunError: it, or Java, is not to be had.
    """
    if shutil.which("javac") is None:
        raise NotRunError("java and javac (17 or newer) are not both on the PATH")
    try:
        name = f"client-{RELEASE}" if not beside else f"{program.lower()}-{RELEASE}"
        jars = classpath(name, [kafka("kafka-clients", RELEASE), *beside], [])
    except MavenError as error:
        raise NotRunError(f"Kafka {RELEASE}: {error}") from None
    path, folder = ":".join(map(str, jars)), CACHE / "classes" / f"{program.lower()}-{RELEASE}"
    source = HERE / "members" / f"{program}.java"
    with fetching():
        folder.mkdir(parents=True, exist_ok=True)
        built = folder / f"{program}.class"
        if not built.is_file() or built.stat().st_mtime < source.stat().st_mtime:
            _build(["javac", "-nowarn", "--release", "17", "-d", str(folder), "-cp", path, str(source)], HERE)
    return ("java", *SMALL, "-cp", f"{folder}:{path}", program)


def franz_go(program: str = "member") -> tuple[str, ...]:
    """The command of a member by franz-go, or of another of its programs.

    Raises NotRunError: it, or Go, is not to be had.
    """
    if shutil.which("go") is None:
        raise NotRunError("go is not on the PATH")
    path = CACHE / "clients" / "franz_go" / "client"
    with fetching():
        path.parent.mkdir(parents=True, exist_ok=True)
        _build(["go", "build", "-o", str(path), "."], HERE / "franz_go")
    return (str(path), program)


def librdkafka() -> tuple[str, ...]:
    """The command of a member by confluent-kafka."""
    return (sys.executable, str(HERE / "members" / "librdkafka.py"))


def ours() -> tuple[str, ...]:
    """The command of a member by tagwire."""
    return (sys.executable, str(HERE / "members" / "ours.py"))


COMMANDS: Final = {"java": java, "librdkafka": librdkafka, "franz-go": franz_go, "tagwire": ours}
"""By the client's name."""


def _build(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode:
        raise NotRunError(f"{' '.join(command[:2])}: {done.stderr.strip()[-500:]}")


@dataclass
class Member:
    """One that was started.

    Attributes:
        client: whose.
        path: the file it writes to.
    """

    client: str
    path: Path
    process: subprocess.Popen[bytes]

    @property
    def assigned(self) -> frozenset[int]:
        """What it said last that it has."""
        lines = [line for line in self._lines() if line.startswith("=")]
        return frozenset(map(int, lines[-1][1:].split())) if lines else frozenset()

    @property
    def processed(self) -> list[str]:
        """The values it has written; one whose line was not ended was not."""
        return [line for line in self._lines() if not line.startswith("=")]

    def said(self) -> str:
        """The last lines of its errors."""
        return self.path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-1500:]

    def _lines(self) -> list[str]:
        text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


@dataclass
class Group:
    """A group whose members come and go.

    Attributes:
        partitions: how many its topic has.
        target: where its members copy to, None for members that only write down.
    """

    bootstrap: str
    topic: str
    partitions: int
    assignor: str
    folder: Path
    target: str | None = None
    members: list[Member] = field(default_factory=list)
    left: list[Member] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def name(self) -> str:
        return f"group-of-{self.topic}"

    def start(self, client: str, assignor: str | None = None) -> Member:
        """Starts a member, by another assignor than the group's if one is named."""
        path = self.folder / f"{self.topic}-{client}-{next(self._numbers)}"
        command = [*COMMANDS[client](), self.bootstrap, self.topic, self.name, assignor or self.assignor, str(path)]
        if self.target is not None:
            command.append(self.target)
        with open(path.with_suffix(".log"), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ.copy())
        member = Member(client, path, process)
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        """Ends a member without a word (SIGKILL)."""
        member.process.kill()
        member.process.wait()
        self._gone(member)

    def stop(self, *members: Member) -> None:
        """Has members leave the group."""
        for member in members:
            member.process.terminate()
        for member in members:
            try:
                member.process.wait(SECONDS * stretch())
            except subprocess.TimeoutExpired:
                self.kill(member)
                raise AssertionError(f"{member.client} did not leave:\n{member.said()}") from None
            self._gone(member)

    def await_balance(self) -> None:
        """Waits until each partition is of one member, and each member has some."""
        until = time.monotonic() + SECONDS * stretch()
        while True:
            told = [member.assigned for member in self.members]
            if all(told) and sorted(itertools.chain(*told)) == list(range(self.partitions)):
                return
            for member in self.members:
                assert member.process.poll() is None, f"{member.client} ended:\n{member.said()}"
            said = [(member.client, sorted(member.assigned), member.said()) for member in self.members]
            assert time.monotonic() < until, f"the partitions are not assigned: {said}"
            time.sleep(0.05)

    def await_parts(self) -> None:
        """Waits until each member has processed something."""
        until = time.monotonic() + SECONDS * stretch()
        while idle := [member for member in self.members if not member.processed]:
            said = [(member.client, sorted(member.assigned), member.said()) for member in idle]
            assert time.monotonic() < until, f"nothing is processed: {said}"
            time.sleep(0.05)

    def await_processed(self, values: set[str]) -> None:
        """Waits until every value was processed by some member."""
        until = time.monotonic() + SECONDS * stretch()
        while missing := values.difference(self.processed()):
            said = [(member.client, sorted(member.assigned), member.said()) for member in self.members]
            assert time.monotonic() < until, f"{len(missing)} values are missing, such as {min(missing)}: {said}"
            time.sleep(0.1)

    def processed(self) -> list[str]:
        """What all members wrote, those that are gone too."""
        return [value for member in (*self.left, *self.members) for value in member.processed]

    def _gone(self, member: Member) -> None:
        self.members.remove(member)
        self.left.append(member)


@contextmanager
def running(group: Group) -> Iterator[Group]:
    """Ends what is left of a group's processes."""
    try:
        yield group
    finally:
        for member in list(group.members):
            group.kill(member)

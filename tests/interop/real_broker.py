"""Apache Kafka's own broker and its tool that prints segments, from the published jars."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_jars import MavenError, classpath, kafka

from .peer import NotRunError
from .real_node import SECONDS, RealNode

RELEASE: Final = "4.3.1"
"""The newest whose broker and whose tools are published with all that they need."""

RELEASES: Final = ("3.9.2", "4.0.2", "4.3.1", "4.4.0")
"""Those that the client is tried against: the last before 4.0, the first of 4, the newest two."""

_BORROWED: Final = {"4.4.0": kafka("kafka-tools-api", "4.3.1")}
"""The newest broker names this jar of its own version, which is not published; a broker that runs does not use it."""


@dataclass(frozen=True)
class RealBroker:
    """What is needed to run Kafka's own programs."""

    release: str
    jars: tuple[Path, ...]

    @classmethod
    def fetch(cls, release: str = RELEASE, *, tools: bool = False) -> RealBroker:
        """Fetches the jars, with those of the command line tools if they are wanted.

        Raises:
            NotRunError: they, or Java, are not to be had.
        """
        if shutil.which("java") is None:
            raise NotRunError("java (17 or newer) is not on the PATH")
        scala = "2.12" if release < "2.4" else "2.13"
        whole = [kafka(f"kafka_{scala}", release)]
        if tools:
            whole.append(kafka("kafka-tools", release))
        if release in _BORROWED:
            whole.append(_BORROWED[release])
        try:
            found = classpath(f"{'broker-and-tools' if tools else 'broker'}-{release}", whole, [])
        except MavenError as error:
            raise NotRunError(f"Kafka {release}: {error}") from None
        return cls(release, tuple(found))

    @contextmanager
    def running(self, folder: Path) -> Iterator[str]:
        """A broker of one node that keeps its data in `folder`/data; where it listens. Ends with a clean shutdown."""
        node = RealNode.alone(folder)
        node.format(self.jars)
        with node.running(self.jars):
            yield node.address()

    def dump(self, files: Sequence[Path], *options: str) -> list[str]:
        """What kafka-dump-log prints of files."""
        program = ["java", "-Xmx512m", "-cp", ":".join(map(str, self.jars)), "org.apache.kafka.tools.DumpLogSegments"]
        command = [*program, *options, "--files", ",".join(map(str, files))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout.splitlines()

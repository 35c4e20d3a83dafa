"""Java programs of ours that run on Kafka's published jars."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from kafka_jars import CACHE, Coordinates, MavenError, classpath, fetching, kafka

SOURCES: Final = Path(__file__).parent / "java"
JSON: Final[Coordinates] = ("com.fasterxml.jackson.core", "jackson-databind", "2.19.0")
SECONDS: Final = 240
RECORD_PACKAGES: Final = ("org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record.")
"""Where the classes for records are since Kafka 4, and where they were."""


class NotRunError(Exception):
    """What a comparison needs is not to be had here: a jar, or Java itself. The text says what."""


@dataclass(frozen=True)
class Peer:
    """Kafka's classes at one release.

    Attributes:
        release: the published version of all its jars.
        jars: the client jar, what it needs at run time, and other jars of Kafka's with message classes.
    """

    release: str
    jars: tuple[Path, ...]

    @classmethod
    def fetch(cls, release: str, modules: Sequence[str]) -> Peer:
        """Fetches the client jar and those of `modules`.

        Raises:
            NotRunError: one cannot be fetched, or there is no Java to run them with.
        """
        if shutil.which("javac") is None or shutil.which("java") is None:
            raise NotRunError("java and javac (17 or newer) are not both on the PATH")
        try:
            alone = [kafka(module, release) for module in modules]
            found = classpath(release, [kafka("kafka-clients", release), JSON], alone)
        except MavenError as error:
            raise NotRunError(f"Kafka {release}: {error}") from None
        return cls(release, tuple(found))

    def ask(self, program: str, lines: Iterable[str]) -> list[str]:
        """Runs `program` on the jars; returns a line of answer for each line."""
        folder = compiled(self, program)
        path = ":".join(map(str, (folder, *self.jars)))
        asked = list(lines)
        done = subprocess.run(
            ["java", "-Xmx1g", "-cp", path, program],
            input="".join(line + "\n" for line in asked),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
        )
        answers = done.stdout.split("\n")[:-1]
        assert len(answers) == len(asked), done.stderr[-2000:]
        return answers


@cache
def compiled(peer: Peer, program: str) -> Path:
    """The folder with the classes of a program, compiled on a peer's jars."""
    folder = CACHE / "classes" / peer.release
    source = folder / f"{program}.java"
    text = (SOURCES / source.name).read_text(encoding="utf-8")
    if peer.release.startswith("3."):
        text = text.replace(*RECORD_PACKAGES)
    with fetching():
        if source.is_file() and source.read_text(encoding="utf-8") == text and (folder / f"{program}.class").is_file():
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf-8")
        (folder / f"{program}.class").unlink(missing_ok=True)
        compiler = ["javac", "--release", "17", "-d", str(folder)]
        command = [*compiler, "-cp", ":".join(map(str, peer.jars)), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder

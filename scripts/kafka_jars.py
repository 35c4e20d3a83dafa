"""Fetches Kafka's published jars with Maven, and keeps them under .cache/.

Maven's own repository keeps what was downloaded between checkouts; .cache/ holds this checkout's copies under names
that say what they are.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).resolve().parent.parent / ".cache"
REPOSITORY: Final = Path.home() / ".m2" / "repository"
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
SECONDS: Final = 300
TRIES: Final = 2

Coordinates = tuple[str, ...]
"""Group, artifact, version; then a classifier, for a jar that has one."""


class MavenError(Exception):
    """Maven is missing, failed, or took too long. The text is the first line that says why."""


@contextmanager
def fetching() -> Iterator[None]:
    """What is fetched inside is fetched by one process at a time: the others wait, and then find it. A process takes it
    once, not again inside."""
    CACHE.mkdir(exist_ok=True)
    with open(CACHE / "fetching.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kafka(artifact: str, version: str, *classifier: str) -> Coordinates:
    """The coordinates of a jar of Kafka's own group."""
    return "org.apache.kafka", artifact, version, *classifier


def published(artifact: str) -> list[str]:
    """Every version of a Kafka artifact that was ever published, in the order of publication.

    Raises:
        MavenError: the list could not be fetched.
    """
    group = "org.apache.kafka"
    folder = REPOSITORY.joinpath(*group.split("."), artifact)
    with fetching():
        for old in folder.glob("maven-metadata-*.xml"):
            old.unlink()
        maven(f"{PLUGIN}:get", f"-Dartifact={group}:{artifact}:LATEST", "-Dtransitive=false")
        found = [path.read_text(encoding="utf-8") for path in folder.glob("maven-metadata-*.xml")]
    if not found:
        raise MavenError(f"Maven named no versions of {artifact}")
    return re.findall(r"<version>(.*?)</version>", found[0])


def jars(wanted: Iterable[Coordinates]) -> tuple[dict[Coordinates, Path], dict[Coordinates, str]]:
    """The jars asked for, without what they depend on: (paths, why the others could not be fetched)."""
    folder = CACHE / "jars"
    paths = {jar: folder / f"{'-'.join(jar[1:])}.jar" for jar in wanted}
    reasons: dict[Coordinates, str] = {}
    with fetching():
        missing = [jar for jar, path in paths.items() if not path.is_file()]
        if len(missing) > 1:
            with suppress(MavenError):  # one missing jar stops the others of the same run: each is tried alone below
                _copy(missing, folder)
        for jar in missing:
            if not paths[jar].is_file():
                try:
                    _copy([jar], folder)
                except MavenError as error:
                    reasons[jar] = str(error)
    return {jar: path for jar, path in paths.items() if jar not in reasons}, reasons


def classpath(name: str, whole: Sequence[Coordinates], alone: Sequence[Coordinates]) -> list[Path]:
    """Jars to run a program with, in a folder of their own.

    Args:
        name: the folder's name.
        whole: jars that come with what they need at run time.
        alone: jars that come by themselves.

    Raises:
        MavenError: one of them could not be fetched.
    """
    folder = CACHE / "classpath" / name
    pom = folder / "pom.xml"
    text = _pom("".join(_dependency(jar) for jar in whole) + "".join(_dependency(jar, _NOTHING_ELSE) for jar in alone))

    def whole_there() -> bool:
        return pom.is_file() and pom.read_text(encoding="utf-8") == text

    if whole_there():  # and waits for nobody who fetches something else
        return sorted(folder.glob("*.jar"))
    with fetching():
        if not whole_there():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            draft = folder / "draft.xml"
            draft.write_text(text, encoding="utf-8")
            copy = (f"{PLUGIN}:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime")
            maven("-f", str(draft), *copy)
            draft.rename(pom)
    return sorted(folder.glob("*.jar"))


def maven(*arguments: str) -> None:
    """Runs Maven quietly, again if it fails.

    Raises:
        MavenError: it is not installed, failed each time, or took longer than `SECONDS`.
    """
    program = shutil.which("mvn")
    if program is None:
        raise MavenError("mvn is not on the PATH")
    CACHE.mkdir(exist_ok=True)
    command = [program, "-q", "-B", "-U", f"-Dmaven.repo.local={REPOSITORY}", *arguments]
    why = ""
    for _ in range(TRIES):
        try:
            done = subprocess.run(
                command, cwd=CACHE, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            why = f"Maven took longer than {SECONDS} seconds"
            continue
        if done.returncode == 0:
            return
        _, _, error = done.stdout.partition("[ERROR] ")
        why = error.splitlines()[0] if error else f"Maven ended with {done.returncode}"
    raise MavenError(why)


def _copy(wanted: Sequence[Coordinates], folder: Path) -> None:
    items = "".join(f"<artifactItem>{_coordinates(jar)}</artifactItem>" for jar in wanted)
    group, artifact, version = PLUGIN.split(":")
    plugin = (
        f"<build><plugins><plugin>{_coordinates((group, artifact, version))}<configuration>"
        f"<artifactItems>{items}</artifactItems><outputDirectory>{folder}</outputDirectory>"
        "</configuration></plugin></plugins></build>"
    )
    pom = CACHE / "copy.xml"
    CACHE.mkdir(exist_ok=True)
    pom.write_text(_pom("", plugin), encoding="utf-8")
    maven("-f", str(pom), f"{PLUGIN}:copy")


_NOTHING_ELSE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def _pom(dependencies: str, rest: str = "") -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tagwire</groupId><artifactId>jars</artifactId><version>0</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies>{rest}</project>"
    )


def _dependency(jar: Coordinates, rest: str = "") -> str:
    return f"<dependency>{_coordinates(jar)}{rest}</dependency>"


def _coordinates(jar: Coordinates) -> str:
    return "".join(f"<{name}>{part}</{name}>" for name, part in zip(_PARTS, jar))


_PARTS: Final = ("groupId", "artifactId", "version", "classifier")

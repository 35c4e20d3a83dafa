"""What a newcomer has: an empty folder, a Python, the wheel in the place of PyPI's, README and docs, and a broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tagwire.broker import Broker

from ...doc_blocks import PAGES
from ..peer import NotRunError

SECONDS: Final = 240
"""Of one command; of one that installs packages twice that."""

# What pip says where a registry is out of reach. All else is a fault of the wheel, or of what it asks for.
_UNREACHABLE: Final = re.compile(r"Retrying \(|NewConnectionError|ReadTimeoutError|ProxyError|ConnectTimeoutError")
_REQUIREMENT: Final = re.compile(r"'?tagwire(\[[\w,]+\])?'?$")
_BROKERS: Final = re.compile(r"\b(?:host|kafka-\d):90\d\d\b")
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "JAVA_HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


@dataclass
class Way:
    """A shell in a folder that was empty, with a virtual environment in `.venv`, which is activated.

    Attributes:
        folder: where everything is typed.
        wheel: what is installed where a page says `tagwire`.
        broker: stands for the brokers that pages name, on this machine.
    """

    folder: Path
    wheel: Path
    broker: Broker

    @classmethod
    @contextmanager
    def begin(cls, place: Path, wheel: Path) -> Iterator[Way]:
        folder = place / "project"
        folder.mkdir()
        (place / "home").mkdir()
        with Broker(place / "kafka", fsync="never") as broker:
            way = cls(folder, wheel, broker)
            way.types(f"{sys.executable} -m venv .venv")
            yield way

    # What is typed ----------------------------------------------------------------------------------------------------

    def installs(self, page_says: str) -> None:
        """`pip install tagwire[...]` as a page, or an error, says it.

        Raises:
            NotRunError: what it needs cannot be fetched here.
        """
        words = []
        for word in page_says.split():
            found = _REQUIREMENT.fullmatch(word)
            words.append(f"'{self.wheel}{found[1] or ''}'" if found else word)
        cache = (
            os.environ.get("PIP_CACHE_DIR")
            or subprocess.run(
                [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
            ).stdout.strip()
        )
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
        if cache:
            pip["PIP_CACHE_DIR"] = cache
        try:
            done = self._ran(" ".join([*words, "-q", "--disable-pip-version-check"]), pip, 2 * SECONDS, page_says)
        except subprocess.TimeoutExpired:
            raise NotRunError(f"{page_says}: pip took longer than {2 * SECONDS} seconds") from None
        if done.returncode and _UNREACHABLE.search(done.stdout):
            raise NotRunError(f"{page_says}: {done.stdout.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stdout

    def types(
        self,
        command: str,
        *says: str,
        code: int = 0,
        environment: Mapping[str, str | None] | None = None,
        lines: int | None = None,
    ) -> str:
        """One command for bash, after which what is printed, on either stream, is looked at.

        Args:
            says: each stands in what is printed.
            code: the exit code.
            environment: variables that this command has (None: has not) unlike the others.
            lines: so many are printed at most.
        """
        done = self._ran(command, environment or {}, SECONDS, command)
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}"
        for text in says:
            assert text in done.stdout, f"{command} does not say {text!r}:\n{done.stdout}"
        assert lines is None or len(done.stdout.splitlines()) <= lines, done.stdout
        return done.stdout

    def follows(self, page_says: str, *says: str, code: int = 0, **replaced: str) -> str:
        """A command as it stands on a page, asked of this broker and about these files; see `types`."""
        assert any(page_says in page.read_text(encoding="utf-8") for page in PAGES), f"on no page: {page_says}"
        command = _BROKERS.sub(self.broker.bootstrap, page_says)
        for name, value in replaced.items():
            command = command.replace(name, value)
        return self.types(command, *says, code=code)

    def writes(self, name: str, *sources: str) -> None:
        """A file of the newcomer's own."""
        (self.folder / name).write_text("\n".join(sources), encoding="utf-8")

    def _ran(
        self, command: str, environment: Mapping[str, str | None], seconds: int, shown: str
    ) -> subprocess.CompletedProcess[str]:
        given = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # The environment that runs the tests is nobody's else.
        own = (sys.prefix, str(Path(sys.executable).parent))
        path = [place for place in given["PATH"].split(os.pathsep) if not place.startswith(own)]
        given |= {
            "PATH": os.pathsep.join([str(self.folder / ".venv" / "bin"), *path]),
            "HOME": str(self.folder.parent / "home"),
            "VIRTUAL_ENV": str(self.folder / ".venv"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        for name, value in environment.items():
            given.pop(name, None)
            if value is not None:
                given[name] = value
        bash = shutil.which("bash")
        if bash is None:
            raise NotRunError("there is no bash")
        print(f"$ {shown}", flush=True)
        done = subprocess.run(
            [bash, "-c", command],
            cwd=self.folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
        print(told(done.stdout.splitlines()), flush=True)
        return done


_NOISE: Final = re.compile(
    r"\d\d/\d\d/\d\d \d\d:|\s+at [\w.$/]+\(|\s+\.\.\. \d+ more|WARNING: Using incubator|Using Spark's default|"
    r"Setting default log|To adjust logging"
)


def told(lines: Iterable[str]) -> str:
    """What somebody looks at: without Spark's log, its progress and Java's traces."""
    shown = (line.rpartition("\r")[2] for line in lines)
    return "\n".join(line for line in shown if not _NOISE.match(line))

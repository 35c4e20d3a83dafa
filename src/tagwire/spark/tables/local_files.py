"""Small files of this machine that a table keeps beside its own, whole or not at all, and the lock on them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tagwire.errors import StorageError, StorageUnavailableError


@contextmanager
def storage(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailableError(f"{error.filename or path}: {error.strerror or error}") from error


@contextmanager
def locked(state: Path, name: str) -> Iterator[None]:
    """Hold a directory for one job; the lock ends with the process, however it ends.

    It is the directory itself that is locked: the file in it, which says who holds it, can be deleted.

    Args:
        state: is there.
        name: of what is held, for the error.

    Raises:
        StorageError: another process holds it.
    """
    import fcntl

    with ExitStack() as stack:
        with storage(state):
            directory = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, directory)
            file = stack.enter_context((state / "lock").open("a+"))
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise StorageError(f"{name}: in use by process {file.read().strip() or '?'}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def remove_abandoned(parent: Path, prefix: str, seconds: float) -> None:
    """Remove directories that nobody holds by `locked`, since whoever did was killed.

    Args:
        seconds: how old they are, at least: a younger one may be about to be locked.
    """
    import fcntl

    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError), ExitStack() as stack:  # somebody else's, held, or gone
            directory = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, directory)
            if time.time() - os.fstat(directory).st_mtime > seconds:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise StorageError(f"{path}: not ours")
    return found


def part_of(path: Path) -> Path:
    """What `write_json` writes first, and leaves behind where it is cut short."""
    return path.with_name(path.name + ".part")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a small file so that it is there whole or not at all."""
    part = part_of(path)
    part.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    sync(part)
    part.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

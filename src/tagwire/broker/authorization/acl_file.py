"""The file that ACLs are kept in: a line for each change, with its checksum.

    8d5b9e51 {"version": 0}
    1f2c7a00 {"add": [["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"]]}
    77a0c3d2 {"remove": [["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"]]}
    a3a6bf43 {}

What a request changes is one line, so all of it is there after a crash or nothing. What was being written when a
broker ended may be torn: it stands last, nobody was told of it, and it is left out. A broken line before one that is
whole is a StorageError: a broker that forgot a DENY would let in whom it must not.

The line without a change, the mark, is written when what stands before it is on the disk, and so tells a last line that
was torn from one that was damaged since. It is not waited for: until the system has brought it to the disk, which takes
it seconds, damage to the last line after a loss of power is taken for a torn end. The next change is written over it,
so that there is never more than one line whose parts may reach the disk in any order.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from tagwire.broker.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tagwire.broker.storage.files import Files, problem_of, read_file, replace_file
from tagwire.errors import StorageError

logger = logging.getLogger("tagwire.broker")

FILE: Final = "tagwire-acls"
VERSION: Final = 0

MOST_WASTED_BYTES: Final = 1 << 20
"""By how much the lines may outgrow twice what is in force before the file is written anew."""


def size_of(acl: Acl) -> int:
    """How many bytes an ACL has in the file."""
    return len(json.dumps(_written(acl))) + 2


class AclFile:
    """The file, which one thread at a time uses.

    Args:
        files, directory: where it is.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / FILE
        self._size = 0  # of the lines that change something: where the next one goes
        self._is_whole = False  # whether what the file holds is known, and can be added to
        self._may_differ = False

    def load(self) -> Iterable[Acl]:
        """The ACLs in force. They are on the disk then: without the mark behind it the last line may be in the system's
        memory alone, also where a sync of it has failed, and whoever asks for the same again is told that it is done.

        Raises:
            StorageError: the file cannot be read, a line of it is broken that was on the disk, or the disk refused.
        """
        try:
            data = read_file(self._files, self._path)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageError(problem_of(error, self._path)) from error
        found: dict[Acl, None] = {}
        *lines, rest = data.split(b"\n")
        texts = [_checked(line) for line in lines]
        torn = next((number for number, text in enumerate(texts) if text is None), len(texts))
        is_damaged = data.endswith(_MARK) and torn < len(texts)
        if torn == 0 or is_damaged or any(text is not None for text in texts[torn:]):
            raise self._broken(torn + 1, "its checksum is not that of its text")
        for number, text in enumerate(texts[:torn]):
            try:
                _replay(json.loads(text or b""), found, is_first=number == 0)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise self._broken(number + 1, repr(error)) from None
        self._size, self._is_whole = len(data.removesuffix(_MARK)), torn == len(texts) and not rest
        if not self._is_whole:
            logger.warning("%s: what was being written when its broker ended is left out", self._path)
        if not data.endswith(_MARK):
            try:
                self._write_anew(found)
            except OSError as error:
                raise StorageError(problem_of(error, self._path)) from error
        return found

    @property
    def may_differ(self) -> bool:
        """Whether the file may hold something else than what was saved or loaded last: a change that was refused."""
        return self._may_differ

    def _broken(self, number: int, problem: str) -> StorageError:
        told = f"{self._path}, line {number}: not a change of ACLs: {problem}"
        return StorageError(f"{told}; restore it from a backup: it says who may do what")

    def save(self, added: Sequence[Acl], removed: Sequence[Acl], in_force: Iterable[Acl], in_force_bytes: int) -> None:
        """Bring a change to the disk: as a line, or with all that is in force where the file has to be written anew.

        Args:
            in_force: all ACLs after the change.
            in_force_bytes: how many bytes they have, by `size_of`.

        Raises:
            OSError: the disk refused; the file may hold the change or not. Not where it refused the mark alone.
        """
        change = {name: list(map(_written, acls)) for name, acls in (("remove", removed), ("add", added)) if acls}
        line = _line(change)
        is_whole, self._is_whole, self._may_differ = self._is_whole, False, True
        if is_whole and self._size + len(line) <= 2 * in_force_bytes + MOST_WASTED_BYTES:
            self._is_whole = self._append(line)
            self._size += len(line)
        else:
            self._write_anew(in_force)
        self._may_differ = False

    def _write_anew(self, in_force: Iterable[Acl]) -> None:
        data = _line({"version": VERSION}) + _line({"add": list(map(_written, in_force))})
        replace_file(self._files, self._path, data + _MARK)
        self._size, self._is_whole = len(data), True

    def _append(self, line: bytes) -> bool:
        """Adds a line; whether its mark was written, too. The change is on the disk also where it was not."""
        fd = self._files.open(self._path, write=True)
        try:
            self._files.write(fd, [line], self._size)
            self._files.sync(fd)
            try:
                self._files.write(fd, [_MARK], self._size + len(line))
            except OSError as error:
                logger.warning("%s: a change is stored, and not marked: %s", self._path, error.strerror or error)
                return False
            return True
        finally:
            self._files.close(fd)


def _checked(line: bytes) -> bytes | None:
    """The text of a line; None where it has another checksum."""
    told, _, text = line.partition(b" ")
    return text if told == b"%08x" % crc32(text) else None


def _replay(document: Any, found: dict[Acl, None], *, is_first: bool) -> None:
    if is_first and document["version"] != VERSION:
        raise ValueError(f"version {document['version']!r} was written by a newer tagwire")
    for acl in _read(document.get("remove", ())):
        found.pop(acl, None)
    for acl in _read(document.get("add", ())):
        found[acl] = None


def _line(document: object) -> bytes:
    text = json.dumps(document).encode()
    return b"%08x %s\n" % (crc32(text), text)


_MARK: Final = _line({})


def _written(acl: Acl) -> list[str]:
    kind, name, pattern, principal, host, operation, permission = acl
    return [kind.name, name, pattern.name, principal, host, operation.name, permission.name]


def _read(written: Iterable[Sequence[str]]) -> Iterator[Acl]:
    for kind, name, pattern, principal, host, operation, permission in written:
        if not all(isinstance(text, str) for text in (name, principal, host)):
            raise ValueError("a name is no text")
        yield Acl(
            ResourceType[kind],
            name,
            PatternType[pattern],
            principal,
            host,
            Operation[operation],
            Permission[permission],
        )

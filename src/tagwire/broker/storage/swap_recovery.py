"""Recovery of a partition's directory after a crash: replacements are finished or undone, orphaned files removed.

A replacement is made under names that end with `.cleaned`, renamed to `.swap` when all of it is on the disk, and to its
final names when what it replaces is gone. So with a name in `.cleaned` nothing was deleted yet, and without one
everything that `.swap` names is whole. Source: docs/log-files.md#recovery.
"""

from __future__ import annotations

from pathlib import Path

from tagwire.broker.storage.files import Files
from tagwire.broker.storage.scan import batches
from tagwire.broker.storage.segment import CLEANED, SUFFIXES, SWAP
from tagwire.records.files.names import kind_of, offset_of

_LEFT = (CLEANED, ".deleted", ".tmp")
_KINDS = tuple(suffix[1:] for suffix in SUFFIXES)


def recover_swap_files(files: Files, directory: Path) -> list[int]:
    """Bring the directory in order, and on the disk; the base offsets of the segments that are in it then, ascending.

    Raises:
        OSError: the disk refused; sweeping can be begun again.
    """
    found = files.names(directory)
    names = _undo(files, directory, found)
    names = _finish(files, directory, names)
    bases = {_base(name) for name in names if kind_of(name) == "log"}
    for name in [name for name in names if kind_of(name) in _KINDS and _base(name) not in bases]:
        files.remove(directory / name)
        names.remove(name)
    if names != found:
        files.sync_directory(directory)
    return sorted(bases)


def _undo(files: Files, directory: Path, names: list[str]) -> list[str]:
    """Take away what was not ready to replace anything."""
    unready = [_base(name.removesuffix(CLEANED)) for name in names if name.endswith(CLEANED)]
    left_over = [name for name in names if name.endswith(_LEFT)]
    if unready:
        left_over += [name for name in names if name.endswith(SWAP) and _base(name.removesuffix(SWAP)) >= min(unready)]
    for name in left_over:
        files.remove(directory / name)
    return [name for name in names if name not in left_over]


def _finish(files: Files, directory: Path, names: list[str]) -> list[str]:
    """Put what was ready into the place of what it replaces, as far as that is still there."""
    ready = [name for name in names if name.endswith(SWAP)]
    if not ready:
        return names
    for name in ready:
        final = name.removesuffix(SWAP)
        if kind_of(final) == "log":
            replaced = range(_base(final), _end(files, directory / name))
            for old in [old for old in names if kind_of(old) in _KINDS and _base(old) in replaced]:
                files.remove(directory / old)
                names.remove(old)
    files.sync_directory(directory)
    for name in ready:
        files.rename(directory / name, directory / name.removesuffix(SWAP))
    return sorted({name.removesuffix(SWAP) for name in names})


def _end(files: Files, path: Path) -> int:
    """One past the last offset in a log that is whole."""
    end = _base(path.name.removesuffix(SWAP)) + 1
    fd = files.open(path)
    try:
        for _, batch in batches(files, fd, 0, files.size(path)):
            end = batch.last_offset + 1
    finally:
        files.close(fd)
    return end


def _base(name: str) -> int:
    base = offset_of(name)
    return -1 if base is None else base

"""`.txnindex` files beside segments, there only where transactions were aborted. Format: records/files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tagwire.broker.storage.files import Files, read_start
from tagwire.broker.storage.index import most_entries
from tagwire.records.files.index_entries import Entries
from tagwire.records.files.transaction_index import ENTRY, AbortedTransaction, read_transaction_index

_VERSION = 0


def load_transaction_index(files: Files, path: Path, base_offset: int, size: int) -> Entries[AbortedTransaction]:
    """The aborted transactions in the file of a segment of `size` bytes; none where there is no file."""
    try:
        data = read_start(files, path, most_entries(size) * ENTRY.size)
    except FileNotFoundError:
        data = b""
    return read_transaction_index(data, base_offset)


def save_transaction_index(files: Files, path: Path, aborted: Sequence[AbortedTransaction], *, sync: bool) -> None:
    """Write the file; with `sync`, wait until it is on the disk."""
    data = b"".join(ENTRY.pack(_VERSION, *transaction) for transaction in aborted)
    fd = files.open(path, write=True)
    try:
        files.write(fd, [data], 0)
        files.truncate(fd, len(data))
        if sync:
            files.sync(fd)
    finally:
        files.close(fd)

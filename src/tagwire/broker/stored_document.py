"""One JSON document of the data directory, replaced whole: what a cluster's metadata log has in Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Generic, TypeVar

from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.files import Files, UnsettledError, problem_of, read_file, replace_file
from tagwire.errors import Error, KafkaError, StorageError

Content = TypeVar("Content")
Outcome = TypeVar("Outcome")

VERSION = 0


class StoredDocument(Generic[Content]):
    """What one file says, in memory as it is on the disk: changes are stored first and adopted then.

    Args:
        files, path: the file; none is as `empty`.
        executor: whose thread writes it.
        read, write: from the document's `entries`, a list, to the content and back. `read` raises ValueError, KeyError
            or TypeError for what is no such list.
        secret: whether nobody but the file's owner may read it.

    Attributes:
        content: never changed in place.
    """

    def __init__(
        self,
        files: Files,
        path: Path,
        executor: Executor,
        empty: Content,
        read: Callable[[list[Any]], Content],
        write: Callable[[Content], list[Any]],
        *,
        secret: bool = False,
    ) -> None:
        self.content = empty
        self._files = files
        self._path = path
        self._executor = executor
        self._read = read
        self._write = write
        self._secret = secret
        self._serial = SerialTasks()
        self._may_differ = False  # whether the file may hold what was refused

    def load(self) -> None:
        """Read the file.

        Raises:
            StorageError: it cannot be read, or is no such document; its content is not in the text.
        """
        try:
            document = json.loads(read_file(self._files, self._path))
            if document["version"] != VERSION:
                raise StorageError(f"{self._path}: version {document['version']!r} was written by a newer tagwire")
            if not isinstance(document["entries"], list):
                raise TypeError("its entries are no list")
            self.content = self._read(document["entries"])
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(problem_of(error, self._path)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            kind = type(error).__name__
            problem = f"{self._path} is not what a broker wrote there ({kind})"
            raise StorageError(f"{problem}: restore it from a backup, or remove it to begin without") from None

    async def change(self, decide: Callable[[Content], tuple[Content, Outcome]]) -> Outcome:
        """Make the content another, after the changes that were begun before.

        Args:
            decide: gives the new content, or the same, and what this returns.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the disk refused, and nothing has changed. Where it would not take back
                what was there either, the text says so: a start before the next change finds either.
        """
        return await self._serial.run("", self._change(decide))

    async def _change(self, decide: Callable[[Content], tuple[Content, Outcome]]) -> Outcome:
        content, outcome = decide(self.content)
        if content is not self.content or self._may_differ:
            try:
                await asyncio.get_running_loop().run_in_executor(self._executor, self._save, content)
                self._may_differ = False
            except OSError as error:
                self._may_differ = self._may_differ or isinstance(error, UnsettledError)
                raise KafkaError(Error.KAFKA_STORAGE_ERROR, problem_of(error, self._path)) from error
            self.content = content
        return outcome

    def _save(self, content: Content) -> None:
        lines = ",\n".join(map(json.dumps, self._write(content)))
        document = f'{{"version": {VERSION}, "entries": [\n{lines}\n]}}\n'
        replace_file(self._files, self._path, document.encode(), secret=self._secret)


def fields_of(entry: Any, **kinds: type) -> Mapping[str, Any]:
    """These fields of an entry, each of its kind. TypeError or KeyError where it has them not."""
    for name, kind in kinds.items():
        if type(entry[name]) is not kind:
            raise TypeError(f"{name} is no {kind.__name__}")
    return {name: entry[name] for name in kinds}

"""Producer ids that are never given out twice, whatever crashes: taken from the disk in blocks."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from pathlib import Path

from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.files import Files, problem_of, read_file, replace_file
from tagwire.errors import Error, KafkaError, StorageError

FILE = "tagwire-producer-ids"
BLOCK = 1000


class ProducerIds:
    """The producer ids of one data directory. The file holds the first id that was never in a block.

    Args:
        files, directory: where the file is.
        executor: whose thread writes it.
    """

    def __init__(self, files: Files, directory: Path, executor: Executor) -> None:
        self._files = files
        self._path = directory / FILE
        self._executor = executor
        self._serial = SerialTasks()
        self._next = self._end = 0

    def load(self) -> None:
        """Find out which ids are taken.

        Raises:
            StorageError: the file cannot be read, or holds no number.
        """
        try:
            text = read_file(self._files, self._path).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(problem_of(error, self._path)) from error
        if not (text.isdigit() and len(text) <= 18):
            problem = f"{self._path} holds no number: write one into it that no producer id has reached, as 1000000"
            raise StorageError(f"{problem}; ids are given out from there on")
        self._next = self._end = int(text)

    async def take(self) -> int:
        """An id that nobody has had.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE: the disk refused.
        """
        return await self._serial.run(FILE, self._take())

    async def _take(self) -> int:
        if self._next == self._end:
            try:
                await asyncio.get_running_loop().run_in_executor(self._executor, self._save, self._end + BLOCK)
            except OSError as error:
                raise KafkaError(Error.COORDINATOR_NOT_AVAILABLE, f"{self._path}: {error}") from error
            self._end += BLOCK
        self._next += 1
        return self._next - 1

    def _save(self, end: int) -> None:
        replace_file(self._files, self._path, b"%d\n" % end)

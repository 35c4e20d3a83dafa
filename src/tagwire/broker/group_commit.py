"""Group commit: one write and one fsync for all the batches that wait for a partition.

While one group is on its way to the disk the next one gathers, so the number of syncs follows the disk's speed and
not the producers' number. The work, checking the batches included, is done in a thread: the event loop never waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from tagwire.broker.storage.batch import Appended, Batch
from tagwire.broker.storage.log import PartitionLog
from tagwire.errors import Error, KafkaError, StorageError, TagwireError

logger = logging.getLogger("tagwire.broker")

MakeBatch = Callable[[], Batch]

_Waiting = tuple[MakeBatch, bool, "asyncio.Future[Appended]"]


class GroupCommit:
    """Appends to one log from one event loop.

    Args:
        log: where the batches go.
        executor: whose threads write and sync.
        sync: whether an append waits for the disk (fsync="batch"), or only for the operating system.
        advanced: called on the event loop whenever more can be read.
    """

    def __init__(self, log: PartitionLog, executor: Executor, *, sync: bool, advanced: Callable[[], None]) -> None:
        self._log = log
        self._executor = executor
        self._sync = sync
        self._advanced = advanced
        self._waiting: list[_Waiting] = []
        self._running: asyncio.Task[None] | None = None

    def append(self, make: MakeBatch, *, sync: bool = False) -> asyncio.Future[Appended]:
        """Add a batch after all those added before. The future is done when it is as safe as `sync` asks, and can be
        read.

        It fails with StorageError when the disk refused, and nothing of the batch will ever be read.

        Args:
            make: called in a thread: gives the batch, or raises KafkaError for one that is refused, as the future then
                does.
            sync: this one waits for the disk, with all that stands before it, whether others do or not.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((make, sync, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return future

    async def idle(self) -> None:
        """Wait until nothing is being written."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group, self._waiting = self._waiting, []
                makers = [make for make, _, _ in group]
                sync = self._sync or any(wanted for _, wanted, _ in group)
                outcome: Sequence[Appended | Exception]
                try:
                    outcome = await loop.run_in_executor(self._executor, self._commit, makers, sync)
                except Exception as error:
                    logger.exception("%s: appending failed", self._log.directory.name)
                    outcome = [error] * len(group)
                for (_, _, future), result in zip(group, outcome):
                    if future.done():  # whoever waited has gone
                        continue
                    if isinstance(result, Exception):
                        future.set_exception(result)
                        future.exception()  # it is not logged where who began the append has gone before it waited
                    else:
                        future.set_result(result)
                self._advanced()
        finally:
            self._running = None

    def _commit(self, makers: list[MakeBatch], sync: bool) -> list[Appended | TagwireError]:
        made = [_made(make) for make in makers]
        appended = iter(self._append([batch for batch in made if isinstance(batch, Batch)], sync))
        return [next(appended) if isinstance(batch, Batch) else batch for batch in made]

    def _append(self, batches: list[Batch], sync: bool) -> Sequence[Appended | TagwireError]:
        outcome = self._log.append(batches)
        if not any(isinstance(result, Appended) for result in outcome):
            return outcome
        try:
            if sync:
                self._log.flush()
            else:
                self._log.publish()
        except StorageError as failure:
            return [result if isinstance(result, KafkaError) else failure for result in outcome]
        return outcome


def _made(make: MakeBatch) -> Batch | KafkaError:
    try:
        return make()
    except KafkaError as refusal:
        return refusal
    except Exception as error:  # a fault of this broker, which the batches that wait beside it have no part in
        logger.exception("a batch could not be checked")
        return KafkaError(Error.UNKNOWN_SERVER_ERROR, f"it could not be checked: {type(error).__name__}")

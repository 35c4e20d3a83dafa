"""What waits for the disk, of batches that are written together."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tagwire.broker.group_commit import GroupCommit
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.loading import create_log
from tagwire.broker.topic_config import TopicConfig


class CountedFiles(Files):
    """Files that know how often what was written had to be on the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


@pytest.mark.parametrize(
    ("waits", "syncs"),
    [((False, False), 0), ((True, False), 1), ((False, True), 1), ((False, True, False), 1)],
)
def test_a_batch_that_waits_for_the_disk_does_so_wherever_it_stands_in_its_group(tmp_path, batch, waits, syncs):
    async def written() -> None:
        with ThreadPoolExecutor(1) as executor:
            commit = GroupCommit(log, executor, sync=False, advanced=lambda: None)
            await asyncio.gather(*(commit.append(lambda: batch(1), sync=wanted) for wanted in waits))

    files = CountedFiles()
    log = create_log(files, tmp_path, TopicConfig())
    before = files.syncs
    asyncio.run(written())
    assert (log.end_offset, files.syncs - before) == (len(waits), syncs)

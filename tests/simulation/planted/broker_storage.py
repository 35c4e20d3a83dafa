"""Defects of the broker's logs: what is on the disk, what may be read of it, what a restart finds."""

from __future__ import annotations

from .defect import Defect, Edit

_LOG = "tagwire.broker.storage.log:PartitionLog"
_PRODUCERS = "tagwire.broker.storage.producer_state:ProducerState"

STORAGE = (
    Defect(
        "ack-before-fsync",
        (Edit("tagwire.broker.group_commit:GroupCommit._append", "self._log.flush()", "self._log.publish()"),),
        "a batch is acknowledged before it is on the disk",
        ("lost-write",),
        30,
        "",
    ),
    Defect(
        "read-before-fsync",
        (
            Edit(
                f"{_LOG}._write",
                "self._producers.keep()",
                "self._producers.keep()\n        self._publish()",
            ),
        ),
        "a batch is read by others before it is on the disk, and may be another one after a crash",
        ("high-watermark-unsynced", "vanished-read", "inconsistent-offsets"),
        300,
        "tests/broker/storage/test_log.py::test_what_is_not_flushed_is_not_read",
    ),
    Defect(
        "fsync-tried-again",
        (
            Edit(
                f"{_LOG}._flush",
                '            self._drop_unsafe()\n            self._go_offline(f"fsync failed: {error}")\n',
                "",
            ),
        ),
        "after a failed fsync the next one is trusted for what the first has lost",
        ("lost-write",),
        300,
        "tests/broker/storage/test_log.py::test_a_failed_fsync_is_final_and_its_bytes_are_gone",
    ),
    Defect(
        "high-watermark-one-too-high",
        (
            Edit(
                "tagwire.broker.storage.log:_written_end",
                "VisibleEnd(active.next_offset, ",
                "VisibleEnd(active.next_offset + 1, ",
            ),
        ),
        "the end of a partition is told one past what is there",
        ("high-watermark-past-end", "unavailable"),
        20,
        "",
    ),
    Defect(
        "stable-offset-of-the-newest-transaction",
        (Edit(f"{_PRODUCERS}.first_open", "return min(", "return max("),),
        "of several open transactions only the one begun last holds the last stable offset back",
        ("uncommitted-read", "stable-passes-open", "intermediate-read"),
        50,
        "",
    ),
    Defect(
        "refused-batch-is-remembered",
        (Edit(f"{_LOG}.append", "self._producers.undo()", "self._producers.keep()"),),
        "a batch whose write failed counts as stored: sent again it is taken for a duplicate, and acknowledged",
        ("lost-write",),
        100,
        "",
    ),
    Defect(
        "producers-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.storage.loading:_producers",
                "    producers.keep()\n    return producers",
                "    producers.keep()\n    producers.expire(2**62)\n    return producers",
            ),
        ),
        "a restarted broker does not know the producers that it had: a batch sent again is stored twice",
        ("duplicate",),
        100,
        "",
    ),
    Defect(
        "open-transaction-expires",
        (Edit(f"{_PRODUCERS}.expire", "producer.transaction_start is None and ", ""),),
        "a producer with old timestamps is forgotten with its transaction open, which readers then see",
        ("uncommitted-read", "stable-passes-open", "abort-untold", "aborted-read"),
        500,
        "",
    ),
    Defect(
        "aborted-forgotten-at-start",
        (Edit("tagwire.broker.storage.loading:_producers", "segment.aborted.append(ended)", "pass"),),
        "after a crash it is not told which transactions were aborted",
        ("aborted-read",),
        50,
        "",
    ),
    Defect(
        "torn-batch-kept",
        (
            Edit(
                "tagwire.broker.storage.segment:LogSegment.recover",
                "if batch.checksum(batch.data) != batch.crc:",
                "if batch.size < HEADER_SIZE:",
            ),
        ),
        "recovery keeps a batch of which only a part reached the disk",
        ("unexpected-error", "unavailable", "broken-files"),
        300,
        "",
    ),
    Defect(
        "last-batch-cut",
        (
            Edit(
                "tagwire.broker.storage.segment:LogSegment.recover",
                "in batches(self._files, fd, 0, size, self._dialect):",
                "in batches(self._files, fd, 0, max(size - 1, 0), self._dialect):",
            ),
        ),
        "recovery takes the last whole batch for a torn one",
        ("lost-write",),
        20,
        "",
    ),
    Defect(
        "rename-not-synced",
        (
            Edit(
                "tagwire.broker.storage.files:replace_file",
                "    try:\n        files.sync_directory(path.parent)\n    except OSError as error:",
                "    try:\n        pass\n    except OSError as error:",
            ),
        ),
        "a file is replaced, and the directory not synced: after a loss of power the old one is there",
        (
            "lost-write",
            "unexpected-error",
            "deleted-records-read",
            "log-start-back",
            "brought-back",
            "removed-too-much",
            "unavailable",
        ),
        100,
        "",
    ),
    Defect(
        "new-segment-not-synced",
        (Edit(f"{_LOG}._roll", "        self._new_names = True\n", ""),),
        "the name of a new segment is not synced before what is in it is acknowledged",
        ("lost-write",),
        300,
        "",
    ),
    Defect(
        "replaced-before-it-is-there",
        (
            Edit(
                f"{_LOG}.replace",
                "                new.rename(SWAP)\n                self._files.sync_directory(self.directory)\n",
                "                new.rename(SWAP)\n",
            ),
        ),
        "compaction deletes segments before the name of the one in their place is on the disk",
        ("lost-write", "compaction-lost-last-value"),
        1000,
        "",
    ),
    Defect(
        "tombstone-goes-at-once",
        (
            Edit(
                "tagwire.broker.storage.cleaning:Cleaning._stays",
                "(record.value is not None or not is_over)",
                "record.value is not None",
            ),
        ),
        "compaction takes the records that delete a key before delete.retention.ms is over",
        ("tombstone-removed-early", "lost-write"),
        100,
        "",
    ),
    Defect(
        "compaction-keeps-the-first",
        (
            Edit(
                "tagwire.broker.storage.offset_map:OffsetMap.put",
                "self._offsets[_digest(key)] = offset",
                "self._offsets.setdefault(_digest(key), offset)",
            ),
            Edit(
                "tagwire.broker.storage.cleaning:Cleaning._stays",
                "record.offset >= self.last_of.get(record.key)",
                "record.offset == self.last_of.get(record.key)",
            ),
        ),
        "of a key compaction keeps the first record instead of the last",
        ("compaction-lost-last-value", "lost-write"),
        100,
        "",
    ),
    Defect(
        "retention-takes-the-active-segment",
        (
            Edit(
                f"{_LOG}._expired_before",
                "closed, config = self.closed_segments(), self.config",
                "closed, config = self._segments, self.config",
            ),
            Edit(
                f"{_LOG}._expired_before",
                "too_large = config.retention_bytes >= 0 and surplus >= 0",
                "too_large = config.retention_bytes >= 0 and surplus + segment.size > 0",
            ),
        ),
        "retention by size takes more than it has to, and the segment that is written to",
        ("removed-too-much", "lost-write"),
        200,
        "",
    ),
    Defect(
        "deletion-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.partition:Partition._remember_start",
                "self._starts.raise_to({TopicPartition(self.topic, self.index): offset})",
                "pass",
            ),
        ),
        "records that DeleteRecords took are there again after a restart",
        ("deleted-records-read", "log-start-back", "brought-back"),
        100,
        "",
    ),
    Defect(
        "config-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.topics:Topics._save_altered",
                "self._save([*others, altered.stored])",
                "pass",
            ),
        ),
        "a topic's altered configuration is not stored",
        ("config-lost", "removed-too-much", "unexpected-error"),
        100,
        "",
    ),
    Defect(
        "partitions-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.topics:Topics._list",
                "self._save([*others, *(topic.stored for _, topic in whole)])",
                "self._save([*others, *((before if before.partitions else topic).stored for before, topic in whole)])",
            ),
        ),
        "partitions that were added to a topic are gone after a restart",
        ("lost-write", "unexpected-error", "unavailable", "partition-lost"),
        200,
        "",
    ),
    Defect(
        "descriptor-left-open",
        (
            Edit(
                "tagwire.broker.storage.segment:LogSegment._reading",
                "        finally:\n            self._files.close(fd)",
                "        except FileNotFoundError:\n            self._files.close(fd)\n            raise",
            ),
        ),
        "a file that was read stays open",
        ("leaked-descriptors",),
        20,
        "",
    ),
    Defect(
        "index-points-past-the-offset",
        (
            Edit(
                "tagwire.broker.storage.index:OffsetIndex.lookup",
                "return self._entry(found)",
                "return self._entry(min(found + 1, len(self._offsets)))",
            ),
        ),
        "who reads from an offset begins behind it, where the index has an entry there",
        ("wrong-lookup", "poll-skip", "lost-write", "group-unseen"),
        50,
        "",
    ),
    Defect(
        "time-index-points-past-the-time",
        (
            Edit(
                "tagwire.broker.storage.index:TimeIndex.lookup",
                "found = bisect_right(self._timestamps, timestamp)",
                "found = min(bisect_right(self._timestamps, timestamp) + 1, len(self._timestamps))",
            ),
        ),
        "the first record of a time is told to be a later one",
        ("wrong-lookup",),
        50,
        "",
    ),
    Defect(
        "open-transaction-forgotten-by-a-snapshot",
        (
            Edit(
                "tagwire.broker.storage.producer_state:_producer",
                "entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None",
                "None",
            ),
        ),
        "a transaction that is open in an older segment when the broker is started is not open any more",
        ("uncommitted-read", "aborted-read", "stable-passes-open", "intermediate-read"),
        300,
        "",
    ),
    Defect(
        "aborted-stable-too-early",
        (
            Edit(
                f"{_PRODUCERS}.take",
                "stable = last_offset + 1 if stable is None else stable",
                "stable = last_offset + 1",
            ),
        ),
        "of an aborted transaction it is noted that no older one was open: a reader may not be told of those",
        ("aborted-read", "abort-untold", "broken-files"),
        500,
        "",
    ),
    Defect(
        "duplicates-of-the-last-batch-alone",
        (Edit(f"{_PRODUCERS}.take", "sent = (*known.sent, added)[-WINDOW:]", "sent = (*known.sent, added)[-1:]"),),
        "of a producer only the last batch is known: those before it, sent again, are refused as out of order",
        ("duplicate", "unexpected-error", "lost-write", "nonmonotonic-send", "not-refused"),
        300,
        "",
    ),
    Defect(
        "epoch-ends-where-it-begins",
        (
            Edit(
                "tagwire.broker.storage.leader_epochs:LeaderEpochs.end_of",
                "ends = self._offsets[found] if found < len(self._epochs) else end",
                "ends = self._offsets[found - 1] if found < len(self._epochs) else end",
            ),
        ),
        "a reader is told that an older leader's records are cut off, and goes back to before them",
        ("nonmonotonic-poll", "poll-skip", "unavailable"),
        300,
        "",
    ),
    Defect(
        "deletes-past-the-end",
        (
            Edit(
                "tagwire.broker.storage.readable_log:ReadableLog.check_deletion",
                "if not -1 <= before <= end:",
                "if not -1 <= before:",
            ),
        ),
        "DeleteRecords of an offset that is not there yet deletes what is written up to it",
        ("log-start-past-end", "lost-write", "removed-too-much", "unavailable"),
        100,
        "",
    ),
)

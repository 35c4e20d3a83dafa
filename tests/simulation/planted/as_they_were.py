"""The holes that reading found, as they were before they were mended (docs/simulation-findings.md)."""

from __future__ import annotations

from .defect import Defect, Edit

_FETCH = "tagwire.broker.handlers.fetch"
_CLASSIC = "tagwire.broker.groups.classic_group:ClassicGroup"
_COMMITS = "tagwire.broker.groups.offset_commits:OffsetCommits"
_CONSUMER = "tagwire.client.consuming.consumer_core:ConsumerCore"
_IN_MEMORY = "tests/client/test_consumer_in_memory.py"
_EXPIRY = "tests/broker/groups/test_expiry_of_groups.py"

AS_THEY_WERE = (
    Defect(
        "fenced-by-an-administrator",
        (
            Edit(
                "tagwire.broker.transactions.coordinator:Transactions._mark",
                "if coordinator_epoch is not None or error.error is not Error.TRANSACTION_COORDINATOR_FENCED:",
                "if error.error is not Error.NONE:",
            ),
        ),
        "no transaction ends in a partition into which an administrator has written a later coordinator epoch",
        ("stuck-transaction", "not-committed", "not-refused", "stable-stands-still", "unexpected-log"),
        100,
        "tests/broker/transactions/test_transaction_requests.py"
        "::test_a_marker_of_a_later_coordinator_epoch_keeps_no_later_transaction_from_its_end",
    ),
    Defect(
        "half-an-identity-is-one",
        (
            Edit(
                "tagwire.broker.handlers.init_producer_id:init_producer_id",
                "if (request.producer_id == NONE) != (request.producer_epoch == NONE):",
                "if request.producer_id < NONE:",
            ),
        ),
        "whoever names a producer id without its epoch, or an epoch alone, takes a transactional id over",
        ("not-refused", "fenced-by-nobody"),
        100,
        "tests/broker/transactions/test_transaction_requests.py"
        "::test_whoever_names_a_producer_id_without_an_epoch_or_an_epoch_alone_fences_nobody",
    ),
    Defect(
        "kept-for-as-long-as-all",
        (
            Edit(
                "tagwire.broker.handlers.offset_commit:sort_offsets",
                "None if kept_ms == NOT_SAID else max(0, min(now + kept_ms, LATEST_MS))",
                "None",
            ),
        ),
        "an offset stays for a week, whatever time its client has asked for",
        ("not-refused", "group-offset-back"),
        100,
        "tests/broker/groups/test_group_requests.py::test_an_offset_is_kept_for_as_long_as_its_client_asks",
    ),
    Defect(
        "waits-for-what-is-offline",
        (Edit(f"{_FETCH}:_is_over", "partition.log.is_offline or ", ""),),
        "who waits for records of a partition is not told that it has gone offline",
        ("not-refused", "unanswered", "unavailable"),
        100,
        "tests/broker/test_fetch.py::test_a_waiting_fetch_ends_when_its_partition_goes_offline",
    ),
    Defect(
        "assigned-and-never-asked",
        (Edit(f"{_CLASSIC}._assign", "        self._expect_the_rest()\n", "        self._deadline_ms = None\n"),),
        "a member that sends heartbeats, and never asks for its assignment, keeps its partitions",
        ("group-stalled", "unowned", "not-refused"),
        100,
        "tests/broker/groups/test_classic_group.py"
        "::test_a_member_that_never_asks_for_its_assignment_is_removed_although_it_heartbeats",
    ),
    Defect(
        "added-to-what-was",
        (
            Edit(
                "tagwire.broker.handlers.incremental_alter_configs:_alter",
                "    if topics.get(name) is None:\n",
                "    before = topics.get(name)\n    if before is None:\n",
            ),
            Edit(
                "tagwire.broker.handlers.incremental_alter_configs:_alter",
                "    def wanted(topic: Topic) -> Mapping[str, str | None]:\n"
                "        return values(topic, one.changes)\n",
                "    wanted = values(before, one.changes)\n",
            ),
        ),
        "of two who add to a list of configurations at once, what one has added is gone",
        ("config-lost", "not-refused"),
        100,
        "tests/broker/test_changing_topics.py::test_what_is_added_to_a_list_by_two_at_a_time_is_all_added",
    ),
    Defect(
        "named-by-both-and-deleted",
        (
            Edit(
                "tagwire.broker.handlers.delete_topics:_named_by_both",
                "if topic is not None and (None, topic.topic_id) in ids",
                "if topic is not None and not ids",
            ),
        ),
        "a topic that a request names by its name, and by its id as well, is deleted",
        ("not-refused",),
        100,
        "tests/broker/test_topics.py"
        "::test_a_topic_that_is_named_by_its_name_and_its_id_is_refused_and_the_others_are_deleted",
    ),
    Defect(
        "new-partitions-are-the-clusters",
        (
            Edit(
                "tagwire.broker.handlers.create_partitions:_replicas",
                "return partial(call.broker.image.spread, wanted.name, factor=factor)",
                "return None",
            ),
        ),
        "new partitions have as many replicas as the cluster gives to new topics",
        ("not-refused", "partition-lost", "unavailable"),
        100,
        "tests/broker/test_cluster.py::test_new_partitions_have_as_many_replicas_as_the_topics_others",
    ),
    Defect(
        "lookup-tells-the-latest-epoch",
        (
            Edit(
                "tagwire.broker.handlers.list_offsets:_epoch_of",
                "log.leader_epoch if timestamp == LATEST else log.epochs.at(offset)",
                "log.leader_epoch",
            ),
        ),
        "an offset that was looked up is told with the present leader epoch, and not with that of its record",
        ("not-refused", "wrong-lookup"),
        100,
        "tests/broker/test_list_offsets.py::test_an_offset_is_told_with_the_leader_epoch_of_its_record",
    ),
    Defect(
        "none-is-an-epoch",
        (
            Edit(
                "tagwire.broker.storage.leader_epochs:LeaderEpochs.end_of",
                "if epoch > self.latest or epoch == NO_EPOCH:",
                "if epoch > self.latest:",
            ),
        ),
        "of epoch -1, which stands for none, an end is told",
        ("epoch-end-wrong", "not-refused"),
        100,
        "tests/broker/test_cluster.py::test_of_no_epoch_no_end_is_told",
    ),
    Defect(
        "empty-for-the-nameless-alone",
        (
            Edit(
                f"{_CLASSIC}.check_commit",
                "if generation < 0 and self.state is State.EMPTY:",
                'if generation < 0 and member_id == "" and instance_id is None and self.state is State.EMPTY:',
            ),
        ),
        "who gives itself a name, and takes part in no group, cannot commit to an empty one",
        ("not-refused", "not-committed", "failed-for-nothing"),
        100,
        "tests/broker/groups/test_classic_group.py"
        "::test_to_an_empty_group_whoever_names_no_generation_commits_whatever_else_it_says",
    ),
    Defect(
        "transactions-end-with-a-rebalance",
        (
            Edit(
                f"{_CLASSIC}.check_commit",
                "if self.state is State.COMPLETING and not in_transaction:",
                "if self.state is State.COMPLETING:",
            ),
        ),
        "between joining and the assignment a transaction's offsets are refused, which its producer takes for its end",
        ("not-refused", "not-committed", "failed-for-nothing", "unexpected-error"),
        100,
        "tests/broker/groups/test_classic_group.py::test_between_joining_and_the_assignment_only_transactions_commit",
    ),
    Defect(
        "under-way-when-its-topic-goes",
        (Edit(f"{_COMMITS}._storing", "group_id, offsets.keys()", "group_id, frozenset()"),),
        "an offset that is being stored when its topic is deleted holds for the next topic of the name",
        ("old-topic-offset", "group-skip", "not-refused"),
        100,
        "tests/broker/groups/test_offsets_of_deleted_topics.py"
        "::test_an_offset_that_is_being_stored_when_its_topic_is_deleted_is_forgotten",
    ),
    Defect(
        "forgets-one-after-the-other",
        (
            Edit(
                f"{_COMMITS}._forget_offsets",
                "        await asyncio.gather(*(self._forget_in(found) for found in _in_batches(gone)))\n",
                "        for group_id, found in gone.items():\n"
                "            if found:\n"
                "                await self._forget_in({group_id: sorted(found)})\n",
            ),
        ),
        "what a group commits of the next topic of a name goes with what others committed of the one before",
        ("group-offset-lost", "group-offset-back", "given-again", "not-refused"),
        100,
        "tests/broker/groups/test_offsets_of_deleted_topics.py"
        "::test_what_is_committed_of_the_next_topic_of_the_name_is_kept",
    ),
    Defect(
        "idle-is-old",
        (
            Edit(
                "tagwire.broker.groups.coordinator:_expired_offsets",
                "before_ms if entry.emptied_ms < before_ms else 0",
                "before_ms",
            ),
        ),
        "a group whose members commit seldom loses its offsets as soon as the last of them is gone",
        ("group-offset-lost", "group-offset-back", "given-again"),
        100,
        f"{_EXPIRY}::test_offsets_of_a_group_last_from_when_its_last_member_was_gone",
    ),
    Defect(
        "too-old-while-it-is-replaced",
        (
            Edit(
                "tagwire.broker.groups.coordinator:Groups._expire",
                "if old and group_id not in self._coming:",
                "if old:",
            ),
        ),
        "an offset that is being stored is forgotten with the one before, which was too old",
        ("group-offset-lost", "group-offset-back", "given-again"),
        100,
        f"{_EXPIRY}::test_an_offset_that_is_being_stored_is_not_forgotten_with_the_one_before",
    ),
    Defect(
        "too-old-for-a-transaction",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets.expired",
                "return [partition for partition in old if not self.is_unstable(partition)]",
                "return old",
            ),
        ),
        "what an open transaction would commit for a group is forgotten with an offset that is too old",
        ("group-offset-lost", "group-offset-back", "given-again", "aborted-offset", "not-refused"),
        100,
        f"{_EXPIRY}::test_an_offset_is_not_too_old_while_a_transaction_would_commit_another",
    ),
    Defect(
        "another-log-is-no-news",
        (
            Edit(
                "tagwire.broker.storage.readable_log:ReadableLog.divergence",
                "return told if told[0] < epoch or told[1] < offset else None",
                "return None",
            ),
        ),
        "a reader that says of which epoch its last record was is not told that the log is another one",
        ("not-refused", "epoch-end-wrong"),
        100,
        "tests/broker/test_cluster.py::test_a_reader_is_told_at_once_where_the_log_is_not_the_one_that_it_has_read",
    ),
    Defect(
        "zstd-for-everybody",
        (
            Edit(
                f"{_FETCH}:_read_one",
                'if call.version < FETCH_ZSTD and log.config.compression_type == "zstd":',
                "if call.version < 0:",
            ),
        ),
        "who asks in a version before zstd is given records that are compressed with it",
        ("not-refused",),
        100,
        "tests/broker/test_fetch.py::test_who_does_not_know_zstd_is_given_none_of_a_topic_that_is_compressed_with_it",
    ),
    Defect(
        "sleeps-through-a-marker",
        (Edit(f"{_FETCH}:_results", " or _is_shown(hidden)", ""),),
        "who waits for committed records is not woken by a marker that is smaller than what it shows",
        ("not-refused", "unanswered", "unseen"),
        100,
        "tests/broker/test_fetch.py::test_a_fetch_of_committed_records_ends_when_a_marker_shows_enough",
    ),
    Defect(
        "without-numbers-nothing-was-sent",
        (
            Edit(
                "tagwire.broker.storage.producer_state:ProducerState.take",
                "sent = (*known.sent, added)[-WINDOW:]",
                "sent = (*known.sent, added)[-WINDOW:] if origin.first_sequence >= 0 else known.sent",
            ),
        ),
        "compaction keeps each transaction of a producer whose batches have no numbers",
        ("not-refused", "producer-forgotten", "owner-forgotten"),
        100,
        "tests/broker/storage/test_compaction.py"
        "::test_of_a_producer_whose_batches_are_not_numbered_the_last_transaction_alone_is_kept",
    ),
    Defect(
        "outlived-by-what-it-deletes",
        (
            Edit(
                "tagwire.broker.storage.cleaning:Cleaning.keep",
                "is_compacted = batch.next_offset <= self.last_of.next_offset",
                "is_compacted = True",
            ),
        ),
        "the time of a record that deletes begins with a pass that leaves what it deletes",
        ("tombstone-removed-early", "brought-back", "not-refused"),
        100,
        "tests/broker/storage/test_compaction.py"
        "::test_the_time_of_a_deletion_begins_with_the_pass_that_takes_what_it_deletes",
    ),
    Defect(
        "all-deleted-when-the-round-began",
        (Edit("tagwire.broker.scheduler:compact", "compaction.run, dirt, wall_ms()", "compaction.run, dirt, now_ms"),),
        "a log that is late in a round of compaction counts the time of its deletions from the round's beginning",
        ("tombstone-removed-early", "not-refused"),
        100,
        "tests/broker/test_scheduler.py::test_the_time_of_a_deletion_begins_when_its_own_log_is_compacted",
    ),
    Defect(
        "noted-of-segments-that-are-gone",
        (
            Edit(
                "tagwire.broker.storage.log:PartitionLog._delete_before",
                "            drop_snapshot(self._files, self.directory, segment.base_offset)\n",
                "",
            ),
        ),
        "what was noted of producers where a segment began stays when the segment goes",
        ("broken-files", "not-refused", "producer-forgotten"),
        100,
        "tests/broker/storage/test_log.py::test_what_was_noted_of_producers_where_a_segment_began_goes_with_it",
    ),
    Defect(
        "gathered-is-consumed",
        (
            Edit(
                "tagwire.client.consuming.given_records:GivenRecords._first_unread",
                "for record in (*self.gathered, *self._unread()):",
                "for record in self._unread():",
            ),
        ),
        "a listener commits what a call has gathered, and not given",
        ("group-skip", "poll-skip", "not-committed"),
        100,
        f"{_IN_MEMORY}::test_a_listener_commits_nothing_that_is_gathered_and_not_given",
    ),
    Defect(
        "gathered-for-a-listener-that-raises",
        (
            Edit(
                f"{_CONSUMER}.consume",
                "                if given.gathered:\n                    await self.rewind()\n                raise\n",
                "                raise\n",
            ),
        ),
        "what a call has gathered is gone when a listener raises",
        ("poll-skip", "group-skip", "unseen"),
        100,
        f"{_IN_MEMORY}::test_what_is_gathered_when_a_listener_raises_is_given_by_the_next_call",
    ),
    Defect(
        "dropped-and-then-committed",
        (
            Edit(
                f"{_CONSUMER}._rebalance",
                "        try:\n            if event.kind is RebalanceKind.REVOKED",
                "        try:\n            if event.kind is not RebalanceKind.ASSIGNED:\n"
                "                self._given.drop(event.partitions)\n"
                "            if event.kind is RebalanceKind.REVOKED",
            ),
        ),
        "what was fetched and not read of a partition that is taken away is committed",
        ("group-skip", "poll-skip"),
        100,
        f"{_IN_MEMORY}::test_a_listener_commits_nothing_that_was_fetched_and_not_read",
    ),
    Defect(
        "given-while-it-goes-is-not-given",
        (
            Edit(
                "tagwire.client.fetch_positions:FetchPosition.given",
                "seeks >= since and",
                "seeks == self.seeks and",
            ),
            Edit(
                "tagwire.client.fetch_positions:FetchPosition.leave",
                "        self.seeks += 1\n",
                "        self._began = self.seeks + 1, self.given\n        self.seeks += 1\n",
            ),
        ),
        "records that are given while their partition is taken away are not committed",
        ("given-again", "group-offset-back", "not-committed", "fenced-commit"),
        100,
        f"{_IN_MEMORY}::test_what_is_given_while_its_partition_is_taken_away_is_committed",
    ),
    Defect(
        "anything-is-a-position",
        (
            Edit(
                "tagwire.client.consuming.consumer_work:ConsumerWork.await_position",
                "or bool(self.failures) or self.breakdown is not None",
                "or bool(self.failures) or self.breakdown is not None or self.fetched.has_any",
            ),
        ),
        "who asks where a partition is read gets -1 when there are records of another one",
        ("not-refused", "seek-ignored", "unexpected-exception", "poll-skip", "stale-end"),
        100,
        f"{_IN_MEMORY}::test_a_position_is_waited_for_though_records_of_another_partition_are_there",
    ),
    Defect(
        "wrong-where-nobody-reads",
        (
            Edit(
                "tagwire.client.fetch_collector:FetchCollector._due_failure",
                "if self._put_off is not None and not self._put_off.is_current:",
                "if False:",
            ),
        ),
        "what was wrong with a partition is raised after a seek that has gone past it",
        ("seek-ignored", "unexpected-exception", "unexpected-error", "failed-for-nothing", "not-refused"),
        100,
        f"{_IN_MEMORY}::test_what_was_wrong_before_a_seek_is_not_raised_after_it",
    ),
    Defect(
        "one-callback-ends-them",
        (
            Edit(
                f"{_CONSUMER}._call_back",
                "                failed.append(error)\n",
                "                raise error\n",
            ),
        ),
        "what a callback of a commit raises keeps the callbacks of others for another call",
        ("not-committed", "unanswered", "unexpected-exception", "not-refused"),
        100,
        f"{_IN_MEMORY}::test_what_a_callback_raises_comes_after_all_were_called",
    ),
    Defect(
        "nameless-and-so-rebalancing",
        (
            Edit(
                "tagwire.client.consuming.consumer_membership:ConsumerMembership.is_rebalancing",
                "or self._is_reconciling",
                "or self._target != self._current",
            ),
        ),
        "a member that was given a topic whose name no broker tells commits nothing by itself",
        ("given-again", "group-offset-back", "not-committed", "group-stalled"),
        100,
        f"{_IN_MEMORY}::test_a_topic_that_no_broker_names_keeps_nothing_from_being_committed",
    ),
    Defect(
        "not-there-for-a-moment",
        (
            Edit(
                "tagwire.client.network_client:NetworkClient.partitions",
                "min(deadline, asked + UNKNOWN_TOPIC_PATIENCE), 0",
                "asked, 0",
            ),
        ),
        "who writes to a new partition is refused by a broker that lags behind",
        ("failed-write", "failed-for-nothing", "unexpected-error", "unavailable"),
        100,
        "tests/client/test_producer.py::test_a_partition_that_a_broker_lacks_for_a_moment_is_waited_for",
    ),
    Defect(
        "what-another-has-ended-is-lost",
        (
            Edit(
                "tagwire.spark.sink.driver:Driver._carry_out",
                "if lost and self._is_fenced(client, producer.identity):",
                "if producer.identity.producer_id < 0:",
            ),
        ),
        "a driver that slept once it had decided tells of rows that are lost, which a newer one has committed",
        ("sink-row-lost",),
        1000,
        "tests/spark/test_exactly_once.py::TestEmbedded::"
        "test_a_driver_that_is_overtaken_once_it_has_decided_finds_nothing_lost[True]",
    ),
)

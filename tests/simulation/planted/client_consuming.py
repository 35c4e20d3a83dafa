"""Defects of consumers and readers: positions, commits, assignments, what is given out."""

from __future__ import annotations

from .defect import Defect, Edit

CONSUMING = (
    Defect(
        "commits-what-was-fetched",
        (
            Edit(
                "tagwire.client.consuming.given_records:GivenRecords.note_consumed",
                "one.consumed = position",
                "one.consumed = GivenPosition(one.fetch_position.offset)",
            ),
        ),
        "what is fetched and not given out counts as read: after a rebalance or a restart it is skipped",
        ("poll-skip", "lost-write", "group-skip"),
        50,
        "tests/client/test_consumer_in_memory.py::test_what_was_given_before_the_last_poll_is_committed_automatically_and_nothing_beyond",
    ),
    Defect(
        "skips-after-a-rebalance",
        (
            Edit(
                "tagwire.client.consuming.consumer_work:ConsumerWork._find",
                "one.begin_at(committed.offset, committed.leader_epoch)",
                "one.begin_at(committed.offset + (committed.offset > 0), committed.leader_epoch)",
            ),
        ),
        "a consumer goes on one past what its group has committed",
        ("poll-skip", "lost-write", "group-skip"),
        20,
        "",
    ),
    Defect(
        "commits-what-is-lost",
        (
            Edit(
                "tagwire.client.consuming.pending_commit:PendingCommit.owned",
                "gone = self._gone()",
                "gone: set[TopicPartition] = set()",
            ),
        ),
        "a commit that waited is sent for partitions that are others' by now: their offsets go back",
        ("fenced-commit", "group-offset-back"),
        200,
        "tests/client/test_commits_in_memory.py::test_a_commit_that_waited_while_its_member_was_lost_does_not_take_the_next_owners_offset_back[classic]",
    ),
    Defect(
        "gives-what-was-sought-away-from",
        (
            Edit(
                "tagwire.client.fetch_collector:_Run.is_current",
                "self.seeks == self.position.seeks",
                "self.seeks <= self.position.seeks",
            ),
            Edit(
                "tagwire.client.fetch_positions:CompletedFetch.is_current",
                "self.seeks == self.position.seeks",
                "self.seeks <= self.position.seeks",
            ),
            Edit(
                "tagwire.client.fetch_positions:FetchBuffer.take",
                "elif self._taken(fetched).seeks == position.seeks:",
                "elif self._taken(fetched).seeks <= position.seeks:",
            ),
        ),
        "records that were fetched before a seek, or before a partition was taken away, are still given out",
        ("nonmonotonic-poll", "two-owners", "int-nonmonotonic-poll", "revoked-read"),
        100,
        "tests/client/test_fetching.py::test_what_waits_of_a_removed_partition_is_dropped_though_it_is_added_again",
    ),
    Defect(
        "late-response-moves-the-position",
        (
            Edit(
                "tagwire.client.fetching:Fetcher._take_response",
                "if not self._is_fetched(position) or position.offset != fetch.wanted[partition].offset:",
                "if not self._is_fetched(position):",
            ),
        ),
        "a response to a fetch from before a seek is taken for one from after it",
        ("poll-skip", "nonmonotonic-poll"),
        200,
        "tests/client/test_fetching.py::test_positions_that_are_missing_or_out_of_range_go_on_as_auto_offset_reset_says[earliest-3]",
    ),
    Defect(
        "sticky-gives-twice",
        (
            Edit(
                "tagwire.client.consuming.assignors.sticky_assignment:_claims",
                "claims.owned[other].remove(partition)",
                "pass",
            ),
        ),
        "a partition that two members claim is given to both",
        ("two-owners", "unexpected-exception"),
        500,
        "",
    ),
    Defect(
        "range-gives-twice",
        (
            Edit(
                "tagwire.client.consuming.assignors.range_assignor:_Topic.assign_ranges",
                "self.give(member, taken, assigned)",
                "self.give(member, taken, assigned)\n"
                "                self._unassigned = {taken[-1]: None, **self._unassigned}",
            ),
        ),
        "the last partition of a member's range is also the first of the next one's",
        ("two-owners",),
        50,
        "",
    ),
    Defect(
        "revoked-and-still-given",
        (
            Edit(
                "tagwire.client.consuming.consumer_core:ConsumerCore._rebalanced",
                "        if event.kind is not RebalanceKind.ASSIGNED:\n"
                "            self._given.drop(event.partitions)\n",
                "",
            ),
            Edit(
                "tagwire.client.consuming.consumer_work:ConsumerWork._release",
                "        self._fetcher.remove(one.partition for one in released)\n",
                "",
            ),
        ),
        "records of partitions that the group has taken away are still given out",
        ("two-owners", "nonmonotonic-poll", "int-nonmonotonic-poll", "revoked-read"),
        100,
        "tests/client/test_consumer_in_memory.py::test_nothing_unread_is_given_of_a_partition_that_went_to_another_member",
    ),
    Defect(
        "member-outlives-its-session",
        (
            Edit(
                "tagwire.client.consuming.classic_membership:ClassicMembership._is_session_over",
                "return self._network.now() >= self._heartbeat.session_until and self._has_session",
                "return self._heartbeat.session_until < 0 and self._has_session",
            ),
        ),
        "a member that cannot reach its coordinator reads on when its session is over, and others have its partitions",
        ("two-owners",),
        300,
        "tests/client/test_classic_membership.py::test_after_a_session_without_a_heartbeat_partitions_are_lost_before_any_commit",
    ),
    Defect(
        "late-response-to-the-next-request",
        (
            Edit(
                "tagwire.client.broker_connection:BrokerConnection.expire",
                "        return self._close(request.late(self._now()))",
                "        error = request.late(self._now())\n"
                "        if request in self._in_flight:\n"
                "            self._in_flight.remove(request)\n"
                "        request.settle(error=error)\n"
                "        return error",
            ),
        ),
        "the connection of a request that had no response in time stays open, and a later request gets the late one",
        ("inconsistent-offsets", "lost-write", "poll-skip", "unavailable"),
        200,
        "tests/client/test_core_in_memory.py::test_a_request_without_a_response_is_given_up_at_its_deadline_and_not_before",
    ),
    Defect(
        "leader-known-to-readers-for-ever",
        (
            Edit(
                "tagwire.client.metadata_cache:MetadataCache.mark_stale",
                "self._stale.update(topics)",
                "self._stale.update(name for name in topics if name not in self._topics)",
            ),
            Edit(
                "tagwire.client.metadata_cache:MetadataCache.update_leader",
                "if topic is None or known is None or epoch <= known.leader_epoch or leader not in self.nodes:",
                "if topic is None or known is None or epoch >= known.leader_epoch or leader not in self.nodes:",
            ),
        ),
        "who leads a partition is looked up once, and believed from then on",
        ("unavailable", "unseen", "poll-skip"),
        20,
        "tests/client/test_reader_leaders.py::test_a_topic_with_another_id_is_asked_about_and_read_on[UNKNOWN_TOPIC_ID]",
    ),
    Defect(
        "cooperative-member-keeps-all",
        (
            Edit(
                "tagwire.client.consuming.classic_membership:ClassicMembership._complete",
                "if revoked := owned - partitions:",
                "if revoked := owned - partitions - owned:",
            ),
        ),
        "a member of a cooperative group goes on with what is to be another's",
        ("two-owners", "fenced-commit", "assignment-ignored"),
        100,
        "",
    ),
    Defect(
        "pending-offsets-are-not-awaited",
        (
            Edit(
                "tagwire.client.consuming.commits:OffsetCommits._fetch_request",
                "topics=topics)], require_stable=True)",
                "topics=topics)], require_stable=False)",
            ),
        ),
        "a member begins before what a transaction is about to commit: that is made twice",
        ("made-twice", "group-offset-back", "not-refused"),
        300,
        "",
    ),
)

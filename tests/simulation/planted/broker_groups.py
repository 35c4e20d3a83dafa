"""Defects of the group coordinator: who has what, and what is committed."""

from __future__ import annotations

from .defect import Defect, Edit

_COMMITS = "tagwire.broker.groups.offset_commits:OffsetCommits"

GROUPS = (
    Defect(
        "commit-of-an-older-generation",
        (
            Edit(
                "tagwire.broker.groups.classic_group:ClassicGroup.check_commit",
                "self._member_of(generation, member_id, instance_id).heard_of(now_ms)",
                "self._member(member_id, instance_id).heard_of(now_ms)",
            ),
        ),
        "a member that missed a rebalance commits offsets of partitions that are others' by now",
        ("group-offset-back", "fenced-commit", "not-refused"),
        300,
        "",
    ),
    Defect(
        "commit-in-memory-alone",
        (
            Edit(
                f"{_COMMITS}._commit",
                "            await self._log.append(offset_records(group_id, offsets))\n",
                "            pass\n",
            ),
        ),
        "committed offsets are not stored: a restart forgets them",
        ("group-offset-lost", "group-offset-back"),
        20,
        "",
    ),
    Defect(
        "commit-in-memory-first",
        (
            Edit(
                f"{_COMMITS}._commit",
                "            await self._log.append(offset_records(group_id, offsets))\n",
                "            self._entry(group_id).offsets.commit(offsets)\n"
                "            await self._log.append(offset_records(group_id, offsets))\n",
            ),
        ),
        "offsets count before they are stored, also where storing them fails",
        ("group-offset-back", "group-offset-lost"),
        500,
        "",
    ),
    Defect(
        "aborted-offsets-count",
        (
            Edit(
                "tagwire.broker.groups.offsets:GroupOffsets.end_transaction",
                "        if committed:\n",
                "        if offsets:\n",
            ),
        ),
        "offsets of a transaction that was aborted count as committed: what they pass is never processed",
        ("aborted-offset", "poll-skip", "made-nothing"),
        50,
        "",
    ),
    Defect(
        "offsets-of-a-transaction-count-at-once",
        (
            Edit(
                f"{_COMMITS}._commit_in_transaction",
                "self._count(self._prepare(group_id, producer_id, offsets))",
                "self._count(self._prepare(group_id, producer_id, offsets))\n"
                "        self._entry(group_id).offsets.commit(offsets)",
            ),
        ),
        "offsets of an open transaction are told as committed",
        ("aborted-offset", "poll-skip"),
        100,
        "",
    ),
    Defect(
        "offsets-of-a-transaction-forgotten-at-start",
        (
            Edit(
                "tagwire.broker.groups.coordinator:Groups._take",
                "self._prepare(found.group_id, producer_id, {found.partition: found.offset})",
                "pass",
            ),
        ),
        "offsets of a transaction that was open when the broker ended are not committed with it",
        ("group-offset-lost", "group-offset-back", "duplicate"),
        500,
        "",
    ),
    Defect(
        "given-before-released",
        (
            Edit(
                "tagwire.broker.groups.consumer_member:reconciled",
                "frozenset(partition for partition in added if is_owned(partition))",
                "frozenset[TopicIdPartition]()",
            ),
        ),
        "a member of KIP-848 gets a partition that another one has not given up",
        ("two-owners", "fenced-commit"),
        100,
        "",
    ),
    Defect(
        "session-timer-lost",
        (
            Edit(
                "tagwire.broker.groups.group_table:GroupTable._ring",
                "        entry.timer = None\n",
                "",
            ),
        ),
        "after the first time that a group's timer rings it is never set again: silent members keep their partitions",
        ("unavailable", "unseen"),
        100,
        "",
    ),
    Defect(
        "rebalance-leaves-the-slow-behind",
        (
            Edit(
                "tagwire.broker.groups.classic_group:ClassicGroup._complete_if_all_joined",
                "not self._expected and all(member.on_join for member in self.members.values())",
                "not self._expected and any(member.on_join for member in self.members.values())",
            ),
        ),
        "a rebalance does not wait for members that still have their partitions",
        ("two-owners", "fenced-commit"),
        100,
        "",
    ),
    Defect(
        "offsets-expire-at-once",
        (
            Edit(
                "tagwire.broker.groups.coordinator:_expired_offsets",
                "before_ms = now_ms - OFFSETS_RETENTION_MS",
                "before_ms = now_ms",
            ),
        ),
        "the offsets of a group go as soon as it has no member",
        ("group-offset-lost", "group-offset-back"),
        50,
        "",
    ),
)

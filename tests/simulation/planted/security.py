"""Defects of who may do what, and of who comes in."""

from __future__ import annotations

from .defect import Defect, Edit

_AUTHORIZATION = "tagwire.broker.authorization"
_INDEX = f"{_AUTHORIZATION}.acl_index"
_USERS = "tagwire.broker.scram_users:ScramUsers"

SECURITY = (
    Defect(
        "acl-is-answered-before-it-is-synced",
        (Edit(f"{_AUTHORIZATION}.acl_file:AclFile._append", "            self._files.sync(fd)\n", ""),),
        "an ACL is acknowledged that is not on the disk",
        ("acl-forgotten", "acl-back", "broken-files", "unexpected-log"),
        100,
        "",
    ),
    Defect(
        "deleted-acl-stays-in-the-file",
        (
            Edit(
                f"{_AUTHORIZATION}.acl_file:AclFile.save", '(("remove", removed), ("add", added))', '(("add", added),)'
            ),
        ),
        "an ACL that was deleted is there again after a restart",
        ("acl-back", "wrongly-allowed", "wrongly-refused"),
        100,
        "",
    ),
    Defect(
        "mark-before-the-sync",
        (
            Edit(
                f"{_AUTHORIZATION}.acl_file:AclFile._append",
                "            self._files.write(fd, [line], self._size)\n",
                "            self._files.write(fd, [line + _MARK], self._size)\n",
            ),
        ),
        "a change of ACLs is marked as one that is on the disk before it is",
        ("acl-forgotten", "acl-back", "broken-files", "unexpected-log"),
        300,
        "",
    ),
    Defect(
        "acl-in-memory-is-gone-by",
        (
            Edit(
                f"{_AUTHORIZATION}.acl_file:AclFile.load",
                "        if not data.endswith(_MARK):\n",
                "        if False:\n",
            ),
        ),
        "an ACL that a killed broker had not synced counts after the next start, and is gone with the power",
        ("acl-forgotten", "acl-back"),
        300,
        "tests/broker/authorization/test_acl_file.py"
        "::test_what_a_killed_broker_left_in_memory_is_on_the_disk_before_it_counts",
    ),
    Defect(
        "deleted-acl-counts",
        (Edit(f"{_INDEX}:AclIndex.remove", "            self._patterns[acl.kind].set(acl, to=False)\n", ""),),
        "an ACL that was deleted, and is not listed any more, counts until a restart",
        ("wrongly-allowed", "wrongly-refused"),
        100,
        "",
    ),
    Defect(
        "allow-beside-a-deny",
        (Edit(f"{_INDEX}:AclIndex.decide", "if denied & denies:", "if denied & denies and not allowed & allows:"),),
        "who is allowed and denied the same by one pattern may do it",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "nobody-is-everybody",
        (Edit(f"{_INDEX}:_Pattern.of", "((principal, host), (ANYBODY, host))", "((principal, host),)"),),
        "what is allowed or denied to everybody is so to nobody",
        ("wrongly-allowed", "wrongly-refused"),
        100,
        "",
    ),
    Defect(
        "prefixes-of-a-length-go-together",
        (
            Edit(
                f"{_INDEX}:_Patterns.set",
                "self.lengths[len(acl.name)] -= 1",
                "self.lengths[len(acl.name)] = 0",
            ),
        ),
        "with an ACL of a prefix those of prefixes as long count no more",
        ("wrongly-allowed", "wrongly-refused"),
        300,
        "",
    ),
    Defect(
        "once-allowed-on-any",
        (Edit(f"{_INDEX}:AclIndex.remove", "            self._of_any.clear()\n", ""),),
        "who might write to some topic once is given producer ids when that is over",
        ("wrongly-allowed", "wrongly-refused"),
        300,
        "",
    ),
    Defect(
        "operations-are-not-looked-at",
        (
            Edit(
                f"{_AUTHORIZATION}.acls:AclFilter.matches",
                "            and self.operation in (Operation.ANY, acl.operation)\n",
                "",
            ),
        ),
        "a filter for one operation deletes ACLs of all of them",
        ("acl-forgotten",),
        100,
        "",
    ),
    Defect(
        "all-topics-are-listed",
        (
            Edit(
                f"{_AUTHORIZATION}.special_topics:metadata",
                "    if is_all:\n"
                "        response.topics = [topic for topic in response.topics"
                " if access.may(Operation.DESCRIBE, TOPIC, topic.name)]\n",
                "",
            ),
        ),
        "who asks for all topics is told of those that they may not describe",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "all-operations-are-told",
        (Edit(f"{_AUTHORIZATION}.access:Access.operations", " if self.may(operation, kind, name)", ""),),
        "everybody is told that they may do everything to a topic",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "who-describes-deletes",
        (Edit(f"{_AUTHORIZATION}.special_topics:delete_topics", "found is None and access.may", "access.may"),),
        "who may describe a topic may delete it",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "commits-for-any-topic",
        (Edit(f"{_AUTHORIZATION}.rules:_committed_topic", "return str(topic.name)", "return None"),),
        "who may read a group commits offsets of topics that they may not read",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "offsets-of-any-topic-are-told",
        (
            Edit(
                f"{_AUTHORIZATION}.special_groups:_offsets_of_one",
                " if access.may(Operation.DESCRIBE, TOPIC, t.name)]",
                "]",
            ),
        ),
        "who asks for all offsets of a group is told of topics that they may not describe",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "adds-any-topic-to-a-transaction",
        (
            Edit(
                f"{_AUTHORIZATION}.special_groups:add_partitions_to_txn",
                " and access.may(Operation.WRITE, TOPIC, t.name)",
                "",
            ),
        ),
        "who has a transactional id adds topics that they may not write to",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "transactional-ids-are-listed",
        (
            Edit(
                f"{_AUTHORIZATION}.rule:Shown.respond",
                "self.unless is None or not access",
                "self.unless is not None and not access",
            ),
        ),
        "everybody is told of all transactional ids",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "session-reads-on",
        (
            Edit(
                "tagwire.broker.handlers.fetch:_may_read",
                "return access.may(",
                "return call.request.session_epoch > 0 or access.may(",
            ),
        ),
        "a fetch session reads on when its topic may not be read any more",
        ("wrongly-allowed",),
        100,
        "",
    ),
    Defect(
        "user-is-answered-before-it-is-stored",
        (
            Edit(
                "tagwire.broker.stored_document:StoredDocument._change",
                "await asyncio.get_running_loop()",
                "asyncio.get_running_loop()",
            ),
        ),
        "a user is acknowledged who is not on the disk",
        ("user-forgotten", "user-let-in"),
        300,
        "",
    ),
    Defect(
        "first-secret-stays",
        (
            Edit(
                f"{_USERS}.change",
                "{**before, **{key: wanted for key, wanted in changes.items() if key not in missing}}",
                "{**{key: wanted for key, wanted in changes.items() if key not in missing}, **before}",
            ),
        ),
        "a user who is set again has the secret from before",
        ("user-forgotten", "user-let-in"),
        100,
        "",
    ),
)

"""What groups are given, and what loops make of it."""

from tests.simulation.stories.telling import BOTH, innocent, planted


def _member(story, *, process="c", reset="earliest", protocol="classic", isolation="read_committed", group="g"):
    told = {"group": group, "topics": ["t"], "protocol": protocol, "isolation": isolation, "reset": reset}
    story.call(process, "subscribe", session_timeout=6.0, auto_commit=False, **told)


@planted("seek-ignored")
def _given_from_before_a_seek(story):
    story.send("a", 0)
    story.send("b", 1)
    story.call("c", "seek", topic="t", partition=0, offset=1)
    story.poll((0, "a"))


@planted("seek-ignored")
def _left_out_after_a_seek(story):
    story.send("a", 0)
    story.send("b", 1)
    story.call("c", "seek", topic="t", partition=0, offset="earliest")
    story.poll((1, "b"))
    story.final((0, "a"), (1, "b"))


@innocent
def _goes_on_where_it_sought(story):
    story.send("a", 0)
    story.send("b", 1)
    story.call("c", "seek", topic="t", partition=0, offset=1)
    story.poll((1, "b"))
    story.call("c", "seek", "fail", topic="t", partition=0, offset=5)
    story.poll((0, "a"))
    story.final((0, "a"), (1, "b"))


def _goes_back_to_what_is_gone(story, given, reset="latest", sought=0):
    """A reader of a group that begins at the end goes back to a record that has been deleted."""
    story.call("c", "subscribe", group="g", topics=["t"], reset=reset)
    story.send("a", 0)
    story.send("b", 1)
    story.call("admin", "delete_records", "ok", {"log_start": 1}, topic="t", partition=0, before=1)
    story.state(log_start=1)
    story.call("c", "seek", topic="t", partition=0, offset=sought)
    story.send("x", 2)
    story.poll((given, "abx"[given]), group="g")
    story.final((1, "b"), (2, "x"), start=1)


@planted("seek-ignored")
def _goes_on_at_the_start_though_it_is_to_at_the_end(story):
    _goes_back_to_what_is_gone(story, 1)


@planted("seek-ignored")
def _goes_on_at_the_end_though_it_is_to_at_the_start(story):
    _goes_back_to_what_is_gone(story, 2, "earliest")


@innocent
def _goes_on_at_the_end_as_it_is_to(story):
    _goes_back_to_what_is_gone(story, 2)


@innocent
def _goes_on_at_the_start_as_it_was_sent_there(story):
    _goes_back_to_what_is_gone(story, 1, sought="earliest")


@innocent
def _goes_on_at_the_start_as_it_is_to(story):
    _goes_back_to_what_is_gone(story, 1, "earliest")


@planted("revoked-read")
def _given_what_was_revoked(story):
    story.send("a", 0)
    story.assign("c", 1)
    story.assign("c", 1, f="revoke")
    story.poll((0, "a"), group="g")


@innocent
def _given_what_came_back(story):
    story.send("a", 0)
    story.assign("c", 1)
    story.assign("c", 1, f="revoke")
    story.assign("c", 2)
    story.poll((0, "a"), group="g")


@planted("unowned")
def _nobody_takes_over_from_who_died(story):
    story.final(start=1)
    _member(story)
    story.assign("d", 1)
    story.note("nemesis", "fault", fault="client_killed", target="d")
    story.note("world", "quiet")
    story.poll(group="g")
    story.wait(30)
    story.poll(group="g")


def _wants_another(story, *, survivor):
    """Two members of whom one dies, and the other goes on."""
    story.final(start=1)
    wants = {"group": "g", "isolation": "read_committed", "reset": "earliest"}
    story.call("c", "subscribe", topics=["t"] if survivor else ["another"], **wants)
    story.call("d", "subscribe", topics=["another", "t"], **wants)
    story.assign("d", 1)
    story.note("nemesis", "fault", fault="client_killed", target="d")
    story.note("world", "quiet")
    story.poll(group="g")
    story.wait(30)
    story.poll(group="g")


@planted("unowned")
def _nobody_takes_over_from_who_wanted_other_topics_as_well(story):
    _wants_another(story, survivor=True)


@innocent
def _nobody_takes_over_who_does_not_want_it(story):
    _wants_another(story, survivor=False)


def _grown_while_a_static_leader_was_away(story, release):
    story.final(start=1)
    story.note("broker", "broker_started", node="broker", fsync="batch", release=release, settings={})
    wants = {"group": "g", "isolation": "read_committed", "reset": "earliest", "protocol": "classic"}
    story.call("c", "subscribe", topics=["t"], instance_id="i", **wants)
    story.call("admin", "create_partitions", topic="t", count=1)
    story.note("world", "quiet")
    story.poll(group="g")
    story.wait(30)
    story.poll(group="g")


@innocent
def _nobody_sees_that_a_topic_grew_while_its_static_leader_was_away(story):
    _grown_while_a_static_leader_was_away(story, "2.8")


@planted("unowned")
def _nobody_sees_that_a_topic_grew_though_the_static_leader_leads_again(story):
    _grown_while_a_static_leader_was_away(story, "3.3")


@planted("group-unseen")
def _passed_by_all_of_a_group(story):
    _member(story)
    story.send("a", 0)
    story.send("b", 1)
    story.assign("c", 1)
    story.poll((1, "b"), group="g")
    story.final((0, "a"), (1, "b"))


@planted("group-stalled")
def _nobody_of_a_group_reads_on(story):
    _member(story)
    story.send("a", 0)
    story.note("world", "quiet")
    story.wait(30)
    story.poll(group="g")
    story.final((0, "a"))


@innocent
def _a_group_has_a_new_member_that_has_not_polled_for_long(story):
    _member(story)
    story.send("a", 0)
    story.note("world", "quiet")
    story.wait(30)
    _member(story, process="d")
    story.poll(process="d", group="g")
    story.final((0, "a"))


@innocent
def _a_group_is_given_all_by_one_or_the_other(story):
    _member(story)
    _member(story, process="d")
    story.send("a", 0)
    story.send("b", 1)
    story.assign("c", 1)
    story.poll((0, "a"), group="g")
    story.commit(1, generation=1)
    story.assign("c", 1, f="revoke")
    story.assign("d", 2)
    story.poll((1, "b"), process="d", group="g")
    story.final((0, "a"), (1, "b"))


@innocent
def _a_group_began_at_the_end_or_sought_it(story):
    _member(story, reset="latest")
    _member(story, process="d", group="h")
    story.send("a", 0)
    story.send("b", 1)
    story.poll((1, "b"), group="g")
    story.call("d", "seek", group="h", topic="t", partition=0, offset="latest")
    story.poll(process="d", group="h")
    story.final((0, "a"), (1, "b"))


@innocent
def _a_group_is_still_catching_up(story):
    _member(story)
    for offset in range(30):
        story.send(f"r{offset}", offset)
    story.note("world", "quiet")
    story.assign("c", 1)
    for offset in range(15):
        story.poll((offset, f"r{offset}"), group="g")
    story.poll(group="g")
    story.final(*((offset, f"r{offset}") for offset in range(30)))


@innocent
def _a_group_waits_for_a_transaction(story):
    _member(story)
    story.assign("c", 1)
    story.send("a", 0)
    story.note("world", "quiet")
    story.wait(30)
    story.state(last_stable=0, high_watermark=1)
    story.poll(group="g")
    story.final((0, "a"))


def _loop(story, end, *made):
    _member(story)
    story.send("a", 0)
    story.send("b", 1)
    story.assign("c", 1)
    story.poll((0, "a"), (1, "b"), group="g")
    story.call("p", "begin", transaction="t1")
    for offset, source in enumerate(made):
        story.send(f"of-{source}", offset, topic="u", transaction="t1", source=source, kind="transactional")
    story.call("p", "send_offsets", transaction="t1", group="g", offsets=[["t", 0, 2]])
    story.call("p", end, transaction="t1")
    story.final((0, "a"), (1, "b"))
    records = [(offset, f"of-{source}") for offset, source in enumerate(made)]
    story.final(*records, topic="u", end=3, isolations=BOTH[:1])
    story.final(*(records if end == "commit_transaction" else ()), topic="u", end=3, isolations=BOTH[1:])


@planted("made-nothing")
def _a_source_is_passed_and_nothing_made_of_it(story):
    _loop(story, "commit_transaction", "a")


@innocent
def _each_source_is_made_into_one(story):
    _loop(story, "commit_transaction", "a", "b")


@innocent
def _an_aborted_loop_has_passed_nothing(story):
    _loop(story, "abort_transaction", "a")


@planted("two-owners")
def _a_classic_member_reads_on_long_after_its_session(story):
    _member(story)
    for offset in range(2):
        story.send(f"r{offset}", offset)
    story.assign("c", 1)
    story.poll((0, "r0"), group="g")
    story.assign("d", 2)
    story.wait(20)
    story.poll((1, "r1"), group="g")
    story.poll(process="d", group="g")


@innocent
def _a_member_that_was_asleep_reads_what_it_had(story):
    _member(story)
    for offset in range(2):
        story.send(f"r{offset}", offset)
    story.assign("c", 1)
    story.poll((0, "r0"), group="g")
    story.note("nemesis", "fault", fault="client_pause", target="c", seconds=20)
    story.assign("d", 2)
    story.wait(20)
    story.poll((1, "r1"), group="g")
    story.poll(process="d", group="g")


@planted("assigned-twice")
def _a_coordinator_has_a_partition_twice(story):
    members = {"m1": [["t", 0]], "m2": [["t", 0], ["t", 1]]}
    story.call("admin", "describe_group", "ok", {"members": members, "offsets": [], "state": "Stable"}, group="g")


@innocent
def _a_coordinator_has_each_partition_once(story):
    members = {"m1": [["t", 0]], "m2": [["t", 1]]}
    story.call("admin", "describe_group", "ok", {"members": members, "offsets": [], "state": "Stable"}, group="g")


@planted("group-offset-lost")
def _a_described_group_has_lost_its_offset(story):
    story.commit(3)
    story.call("admin", "describe_group", "ok", {"members": {}, "offsets": [], "state": "Empty"}, group="g")


@planted("partial-transaction")
def _a_transaction_is_committed_without_what_was_not_delivered(story):
    story.call("p", "begin", transaction="t1")
    story.send("a", end="info", transaction="t1", kind="transactional")
    story.send("b", 0, transaction="t1", kind="transactional")
    story.call("p", "commit_transaction", transaction="t1")
    story.final((0, "b"), end=2)


@planted("partition-lost")
def _a_partition_that_was_added_is_not_there(story):
    story.create()
    story.call("admin", "create_partitions", topic="t", count=2)
    story.note("world", "quiet")
    story.final()


@innocent
def _partitions_that_were_added_are_there(story):
    story.create()
    story.call("admin", "create_partitions", topic="t", count=2)
    story.note("world", "quiet")
    story.final()
    story.final(partition=1)

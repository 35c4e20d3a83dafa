"""Groups: their offsets, and who owns a partition."""

from tests.simulation.stories.telling import innocent, planted


@planted("group-offset-lost")
def _a_commit_is_lost(story):
    story.commit(5)
    story.committed(None)


@planted("group-offset-back")
def _a_commit_is_undone(story):
    story.commit(3)
    story.commit(5)
    story.note("world", "broker_killed", node=1)
    story.committed(3)


@planted("group-offset-back")
def _a_member_begins_before_the_commit(story):
    story.send("a", 0)
    story.send("b", 1)
    story.commit(1)
    story.assign("d", 2)
    story.poll((0, "a"), process="d", group="g")


def _begins_at_the_start_after(story, sought):
    story.send("a", 0)
    story.send("b", 1)
    story.call("c", "seek", topic="t", partition=0, offset=sought)
    story.commit(sought)
    story.assign("d", 2)
    story.poll((0, "a"), (1, "b"), process="d", group="g")


@planted("group-offset-back")
def _a_member_begins_before_what_was_sought_and_committed(story):
    _begins_at_the_start_after(story, 1)


@innocent
def _a_member_begins_elsewhere_where_nothing_is_at_the_commit(story):
    _begins_at_the_start_after(story, 100_000)


@planted("group-offset-back")
def _an_offset_that_was_read_is_gone(story):
    story.commit(3)
    story.commit(5, end="info")
    story.committed(5)
    story.note("world", "broker_killed", node=1)
    story.committed(3)


@planted("group-offset-back")
def _a_commit_of_an_older_generation_comes_late(story):
    waits = story.begin("c", "commit", group="g", generation=1, member="c", offsets=[["t", 0, 3]])
    story.commit(5, process="d", generation=2, member="d")
    story.end(waits)
    story.committed(3)


@innocent
def _a_commit_of_an_older_generation_is_told_late(story):
    waits = story.begin("c", "commit", group="g", generation=1, member="c", offsets=[["t", 0, 3]])
    story.commit(5, process="d", generation=2, member="d")
    story.end(waits)
    story.committed(5)


@innocent
def _commits_of_one_generation_overtake_each_other(story):
    waits = story.begin("c", "commit", group="g", generation=2, member="c", offsets=[["t", 0, 3]])
    story.commit(5, process="d", generation=2, member="d")
    story.end(waits)
    story.committed(3)


@planted("group-offset-unknown")
def _nobody_committed_it(story):
    story.commit(3)
    story.committed(4)


@planted("aborted-offset")
def _an_aborted_transaction_moves_the_group(story):
    story.call("p", "begin", transaction="t1")
    story.call("p", "send_offsets", transaction="t1", group="g", offsets=[["t", 0, 7]])
    story.call("p", "abort_transaction", transaction="t1")
    story.committed(7)


@innocent
def _commits_whose_answers_were_lost_may_count_or_not(story):
    story.commit(3)
    story.commit(5, end="info")
    story.committed(3)
    story.committed(5)
    story.commit(6)
    story.committed(6)


@innocent
def _a_committed_transaction_moves_the_group(story):
    story.call("p", "begin", transaction="t1")
    story.call("p", "send_offsets", transaction="t1", group="g", offsets=[["t", 0, 7]])
    story.call("p", "commit_transaction", "info", transaction="t1")
    story.committed(None)
    story.committed(7)


@innocent
def _offsets_that_were_deleted_are_gone(story):
    story.commit(3)
    story.call("admin", "delete_group_offsets", group="g", partitions=[["t", 0]])
    story.committed(None)


@planted("group-skip")
def _a_member_begins_behind_the_commit(story):
    story.send("a", 0)
    story.send("b", 1)
    story.commit(0)
    story.assign("d", 2)
    story.poll((1, "b"), process="d", group="g")
    story.final((0, "a"), (1, "b"))


@innocent
def _a_member_begins_at_the_commit(story):
    story.send("a", 0)
    story.send("b", 1)
    story.commit(1)
    story.assign("d", 2)
    story.poll((1, "b"), process="d", group="g")
    story.final((0, "a"), (1, "b"))


@planted("two-owners")
def _a_generation_gives_a_partition_twice(story):
    story.assign("c", 2)
    story.assign("d", 2)


@planted("two-owners")
def _a_member_of_a_later_generation_has_kept_what_is_anothers(story):
    story.assign("c", 1)
    story.assign("d", 2)
    story.poll(group="g", generation=2)


@innocent
def _a_generation_that_is_over_is_told_late(story):
    story.assign("c", 7)
    story.assign("d", 6)
    story.poll(group="g", generation=7)


@innocent
def _a_group_without_an_offset_was_forgotten_and_begins_anew(story):
    story.assign("c", 1)
    story.wait(60)
    story.assign("d", 1)


def _begins_anew(story, *, stored):
    story.assign("c", 1)
    commit = story.begin("c", "commit", group="g", offsets=[["t", 0, 0]], generation=1)
    story.end(commit, "ok" if stored else "info")
    story.wait(60)
    story.assign("d", 1)


@innocent
def _a_group_whose_offset_may_not_have_been_stored_begins_anew(story):
    _begins_anew(story, stored=False)


@planted("two-owners")
def _a_group_that_has_an_offset_begins_anew(story):
    _begins_anew(story, stored=True)


@planted("two-owners")
def _nothing_keeps_a_member_from_hearing_that_it_has_lost(story):
    story.assign("c", 1)
    story.assign("d", 2)
    story.note("world", "quiet")
    story.wait(600)
    story.poll(group="g", generation=1)


@planted("two-owners")
def _nothing_is_wrong_and_a_partition_is_given_before_it_is_let_go(story):
    story.assign("c", 1)
    for _ in range(10):
        story.poll(group="g", generation=1)
    story.assign("d", 2)
    story.poll(group="g", generation=1)


def _lets_go(story, protocol, *, generation):
    story.call("c", "subscribe", group="g", topics=["t"], protocol=protocol)
    story.assign("c", 1)
    story.assign("d", 2)
    story.note("c", "revoke", group="g", member="m", generation=generation, partitions=[["t", 0]])


@planted("two-owners")
def _a_member_lets_go_in_the_generation_in_which_the_next_has_it(story):
    _lets_go(story, "classic", generation=2)


@innocent
def _a_member_lets_go_that_has_not_heard_that_its_generation_is_over(story):
    _lets_go(story, "classic", generation=1)


@innocent
def _an_epoch_of_kip_848_is_each_members_own(story):
    _lets_go(story, "consumer", generation=2)


def _reads_on(story, *, after, joining=False):
    story.send("a", 0)
    story.call("c", "subscribe", group="g", topics=["t"], protocol="classic", session_timeout=6.0)
    story.assign("c", 1)
    if joining:
        error = {"type": "tagwire.errors.CommitFailedError", "code": "REBALANCE_IN_PROGRESS", "message": ""}
        refused = story.begin("c", "commit", group="g", offsets=[["t", 0, 0]], generation=1)
        story.end(refused, "info", error=error)
    story.note("nemesis", "fault", fault="partition", target=["c", "broker"], detail={})
    story.assign("d", 3)
    story.wait(after)
    story.poll((0, "a"), group="g", generation=1)


@planted("two-owners")
def _a_member_reads_on_long_after_its_session(story):
    _reads_on(story, after=8)


@innocent
def _a_member_that_waits_for_the_answer_to_its_join_has_a_session_after_it(story):
    _reads_on(story, after=8, joining=True)


@planted("two-owners")
def _a_member_that_waited_for_the_answer_to_its_join_reads_on_long_after_the_session_that_follows(story):
    _reads_on(story, after=20, joining=True)


@innocent
def _a_member_that_does_not_poll_is_left_behind(story):
    story.assign("c", 1)
    story.wait(20)
    story.assign("d", 2)
    story.poll(group="g", generation=1)


@innocent
def _a_member_that_lost_its_session_hears_of_it_later(story):
    story.assign("c", 1)
    story.note("nemesis", "fault", fault="cut", target="c", seconds=60)
    story.wait(50)
    story.assign("d", 2)
    story.poll(group="g", generation=1)
    story.assign("c", 1, f="lost")
    story.poll(group="g", generation=3)


@innocent
def _a_partition_goes_from_one_to_the_other(story):
    story.assign("c", 1)
    story.assign("c", 1, f="revoke")
    story.assign("d", 2)
    story.assign("d", 2, f="revoke")
    story.assign("c", 3)


@innocent
def _a_member_was_killed(story):
    story.assign("c", 1)
    story.note("nemesis", "fault", fault="client_kill", target="c")
    story.assign("d", 2)
    story.note("world", "quiet")
    story.wait(600)
    story.poll(process="d", group="g", generation=2)


@planted("fenced-commit")
def _a_fenced_member_commits(story):
    story.assign("c", 1)
    story.assign("d", 2)
    story.commit(3, generation=1)


@innocent
def _a_fenced_member_is_refused(story):
    story.assign("c", 1)
    story.note("nemesis", "fault", fault="client_paused", target="c", seconds=0)
    story.assign("d", 2)
    story.commit(3, generation=1, end="fail")


def _commits_when_gone(story, generation, *, again=False):
    """A member gives a partition up in generation 2, and its coordinator takes a commit of it."""
    for _ in range(2):
        story.assign("c", 1)
        story.assign("c", 2, f="revoke")
    if again:
        story.assign("c", 2)
    story.note("broker", "commit_taken", group="g", member="c", generation=generation, offsets=[["t", 0, 3]])


@planted("fenced-commit")
def _a_commit_that_waited_is_sent_in_the_next_generation(story):
    _commits_when_gone(story, 3)


@innocent
def _what_waits_when_a_member_closes_is_committed_in_whatever_generation_comes(story):
    story.assign("c", 2)
    story.begin("c", "close", group="g")
    story.assign("c", 2, f="revoke")
    story.note("broker", "commit_taken", group="g", member="c", generation=3, offsets=[["t", 0, 3]])


@innocent
def _a_commit_is_taken_after_its_partition_was_given_up(story):
    _commits_when_gone(story, 2)


@innocent
def _a_partition_that_came_back_is_committed_in_the_next_generation(story):
    _commits_when_gone(story, 3, again=True)


def _stable(story, *held, has):
    story.note("world", "quiet")
    for partition in held:
        story.assign("c", 3, partition)
    for _ in range(2):
        answer = {"state": "Stable", "members": {"c": [["t", each] for each in has]}, "offsets": []}
        story.call("admin", "describe_group", "ok", answer, group="g")


@planted("assignment-ignored")
def _a_member_keeps_what_is_to_be_anothers(story):
    _stable(story, 0, 1, has=[0])


@planted("assignment-ignored")
def _a_member_does_not_take_what_it_was_given(story):
    _stable(story, 0, has=[0, 1])


@innocent
def _a_member_holds_what_it_has(story):
    _stable(story, 0, 1, has=[0, 1])


@planted("old-topic-offset")
def _a_group_stands_in_a_topic_where_it_stood_in_the_one_before(story):
    story.create()
    story.commit(3)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.committed(3)


@innocent
def _a_group_has_committed_in_the_topic_that_was_made_anew(story):
    story.create()
    story.commit(3)
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.commit(3)
    story.committed(3)


@innocent
def _a_commit_was_under_way_while_its_topic_was_deleted(story):
    story.create()
    waits = story.begin("c", "commit", group="g", offsets=[["t", 0, 3]])
    story.call("admin", "delete_topic", topic="t")
    story.create()
    story.end(waits)
    story.committed(3)


@innocent
def _a_disk_refuses_to_forget_what_was_committed_of_a_topic(story):
    story.create()
    story.commit(3)
    story.note("nemesis", "fault", fault="disk_error", target=None, detail={"operation": "write"})
    story.call("admin", "delete_topic", topic="t")
    story.note("nemesis", "heal", fault="disk_error", target=None, detail={"operation": "write"})
    story.create()
    story.committed(3)

"""Members stay, and leave behind what they have come to."""

from tests.simulation.stories.telling import innocent, planted


def _automatic(story, process="c", auto_commit=True, **others):
    told = {"group": "g", "topics": ["t"], "protocol": "classic", "isolation": "read_committed", "reset": "earliest"}
    told |= others
    story.call(process, "subscribe", session_timeout=6.0, max_poll_interval=8.0, auto_commit=auto_commit, **told)


def _handed_over(story, first=1, *, f="revoke", auto_commit=True, warning=""):
    """One member is given two records and gives the partition up, and another one begins with a record."""
    for process in ("c", "d"):
        _automatic(story, process, auto_commit)
    story.assign("c", 1)
    story.send("a", 0)
    story.send("b", 1)
    story.send("x", 2)
    story.poll((0, "a"), (1, "b"), group="g")
    if warning:
        story.note("c", "logged", logger="tagwire.client", level="WARNING", message=warning)
    story.assign("c", 1, f=f)
    story.assign("d", 2)
    story.poll((first, "abx"[first]), process="d", group="g")


@planted("given-again")
def _a_record_is_given_again_after_a_rebalance(story):
    _handed_over(story)


@innocent
def _the_next_one_begins_behind_what_was_given(story):
    _handed_over(story, 2)


@innocent
def _what_was_lost_is_given_again(story):
    _handed_over(story, f="lost")


@innocent
def _who_commits_by_hand_may_not_have(story):
    _handed_over(story, auto_commit=False)


@innocent
def _an_automatic_commit_has_failed(story):
    _handed_over(story, warning="offsets were not committed automatically: no coordinator")


def _lost(story, every=1.0):
    _automatic(story)
    story.assign("c", 1)
    story.note("workload", "quiet")
    for _ in range(16):
        story.wait(every)
        story.poll(group="g")
    story.assign("c", 1, f="lost")


@planted("lost-for-nothing")
def _a_member_that_polls_has_lost_what_it_had(story):
    _lost(story)


@innocent
def _a_member_that_slept_has_lost_what_it_had(story):
    _lost(story, 6.0)


@innocent
def _a_member_loses_what_it_had_while_something_is_wrong(story):
    _automatic(story)
    story.assign("c", 1)
    for _ in range(16):
        story.poll(group="g")
    story.note("workload", "quiet")
    story.assign("c", 1, f="lost")


def _left(story, back=20.0, *, fault=False, every=1.0, renewed=(), closes=("", 0.0)):
    for process in ("c", "d"):
        _automatic(story, process)
    story.assign("c", 1)
    if fault:
        story.note("nemesis", "fault", fault="cut", target="d")
    story.poll(process="d", group="g")
    story.assign("c", 1, f="revoke")
    waited = 0.0
    while waited < back:
        if waited == closes[1] and closes[0]:
            story.call(closes[0], "close", group="g")
        else:
            story.wait(every)
        if waited in renewed:
            _automatic(story, "d")
        story.poll(process="d", group="g")
        waited += every + 2.0
    story.assign("d", 2)


@planted("unowned")
def _nobody_takes_over_from_who_left(story):
    _left(story)


@innocent
def _who_is_there_takes_over_soon(story):
    _left(story, 6.0)


@innocent
def _nobody_takes_over_while_something_is_wrong(story):
    _left(story, fault=True)


@innocent
def _who_is_there_comes_and_goes(story):
    _left(story, renewed=(6.0, 12.0))


@innocent
def _a_static_member_goes_before_it_is_given_anything(story):
    _automatic(story, "e", instance_id="i")
    _left(story, 15.0, closes=("e", 6.0))


@planted("unowned")
def _a_member_that_says_so_goes_before_it_is_given_anything(story):
    _automatic(story, "e")
    _left(story, 15.0, closes=("e", 6.0))


@planted("unowned")
def _nobody_takes_over_though_a_static_member_went_long_ago(story):
    _automatic(story, "e", instance_id="i")
    _left(story, 30.0, closes=("e", 6.0))


@planted("unowned")
def _who_came_and_went_stays_at_last(story):
    _left(story, 30.0, renewed=(3.0, 6.0))


@innocent
def _who_is_there_sleeps(story):
    _left(story, every=6.0)


def _commits_late(story, after):
    _automatic(story)
    story.assign("c", 1)
    story.wait(20.0)
    story.send("a", 0)
    story.poll((0, "a"), group="g")
    story.wait(after)
    error = {"code": "UNKNOWN_MEMBER_ID", "type": "tagwire.errors.KafkaError", "message": "it is nobody"}
    offsets = [["t", 0, 1]]
    story.call("c", "commit", "fail", {"error": error}, group="g", member="m", generation=1, offsets=offsets)


@innocent
def _a_member_that_has_not_polled_for_as_long_as_it_may_is_none_any_more(story):
    _commits_late(story, 9.0)


@planted("failed-for-nothing")
def _a_member_that_has_just_polled_is_none_any_more(story):
    _commits_late(story, 3.0)


def _sends_offsets(story, f):
    _automatic(story, auto_commit=False)
    story.assign("c", 1)
    story.send("a", 0)
    story.wait(20.0)
    story.call("c", "begin", transaction="t1", transactional_id="c")
    story.poll((0, "a"), group="g")
    if f is not None:
        story.assign("c", 1, f=f)
    error = {"code": "ILLEGAL_GENERATION", "type": "tagwire.errors.KafkaError", "message": "it has another one"}
    told = {"group": "g", "member": "m", "generation": 1, "transaction": "t1", "transactional_id": "c"}
    story.call("c", "send_offsets", "info", {"error": error}, offsets=[["t", 0, 1]], **told)


@innocent
def _a_loop_that_polls_in_a_transaction_has_come_to_another_generation(story):
    _sends_offsets(story, "revoke")


@planted("failed-for-nothing")
def _a_loop_is_told_of_another_generation_and_there_was_none(story):
    _sends_offsets(story, None)


def _committed(story, offset, *between):
    """A member is given one record of two, and commits."""
    _automatic(story, auto_commit=False)
    story.assign("c", 1)
    story.send("a", 0)
    story.send("b", 1)
    story.poll((0, "a"), group="g")
    for note in between:
        note(story)
    story.commit(offset)
    story.final((0, "a"), (1, "b"))


@planted("group-skip")
def _a_member_commits_what_it_was_not_given(story):
    _committed(story, 2)


@innocent
def _a_member_commits_what_it_was_given(story):
    _committed(story, 1)


@innocent
def _a_member_commits_where_it_has_gone(story):
    _committed(story, 2, lambda story: story.call("c", "seek", group="g", topic="t", partition=0, offset=2))

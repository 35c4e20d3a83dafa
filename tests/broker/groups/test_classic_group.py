"""The rules of a group, with the time told to it: no broker, no clock, no sleep."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.groups.classic_group import MAX_GROUP_BYTES, MAX_MEMBERS, STORE_AGAIN_MS, ClassicGroup
from tagwire.broker.groups.membership import GroupMetadata, Joining, State
from tagwire.errors import Error, KafkaError

SESSION, REBALANCE = 10_000, 60_000
RANGE = (("range", b"topics"),)


class Talk:
    """A group that is talked to; answers by the name of who asked.

    Attributes:
        stored: what it has proposed last that was stored.
        outcome: what becomes of what it proposes: Error.NONE if it is stored, None while it is not known.
    """

    def __init__(self):
        numbers = count()
        self.group = ClassicGroup("g", lambda name: f"{name}-{next(numbers)}")
        self.now = 1000
        self.joined = {}
        self.synced = {}
        self.stored = GroupMetadata()
        self.outcome = Error.NONE

    def join(self, name, member_id="", *, instance=None, protocols=RANGE, kind="consumer", **options):
        self.joined.pop(name, None)
        joining = Joining(
            member_id, instance, name, "/127.0.0.1", SESSION, options.pop("rebalance", REBALANCE), kind, protocols,
            **{"takes_id": False, **options},
        )  # fmt: skip
        self.group.join(joining, self.now, lambda answer: self.joined.__setitem__(name, answer))
        self.store()
        return self.joined.get(name)

    def sync(self, name, assignments=(), *, instance=None, generation=None):
        self.synced.pop(name, None)
        member_id = self.id_of(name)
        generation = self.group.generation if generation is None else generation
        self.group.sync(
            member_id, instance, generation, None, None, dict(assignments), self.now,
            lambda answer: self.synced.__setitem__(name, answer),
        )  # fmt: skip
        self.store()
        return self.synced.get(name)

    def heartbeat(self, name, generation=None, instance=None):
        generation = self.group.generation if generation is None else generation
        return self.group.heartbeat(self.id_of(name), instance, generation, self.now)

    def id_of(self, name):
        return self.joined[name].member_id

    def wait(self, ms):
        self.now += ms
        self.group.tick(self.now)
        self.store()

    def leave(self, member_id, instance=None):
        error = self.group.leave(member_id, instance, self.now)
        self.store()
        return error

    def store(self):
        while self.outcome is not None and (proposal := self.group.proposal) is not None:
            if self.outcome is Error.NONE:
                self.stored = proposal.metadata
                self.group.adopt(self.now)
            else:
                self.group.refuse(self.outcome, self.now)

    def restarted(self):
        """The group as a restart finds it."""
        group = ClassicGroup("g", str)
        group.restore(self.stored, self.now)
        return group

    def stable(self, *names, **options):
        """A stable group of these members, the first of which leads."""
        for name in names:
            self.join(name, **options)
        if len(names) > 1:
            self.join(names[0], self.id_of(names[0]), **options)
        leader = next(name for name in names if self.id_of(name) == self.group.leader)
        for name in names:
            self.sync(name, {self.id_of(n): n.encode() for n in names} if name == leader else ())
        assert self.group.state is State.STABLE
        return self


@pytest.fixture
def talk():
    return Talk()


def test_one_member_joins_leads_and_gets_what_it_assigns(talk):
    answer = talk.join("a")
    assert (answer.error, answer.generation, answer.protocol, answer.leader) == (0, 1, "range", "a-0")
    assert answer.members == (("a-0", None, b"topics"),)
    assert talk.group.state is State.COMPLETING
    assert talk.sync("a", {"a-0": b"all"}).assignment == b"all"
    assert talk.group.state is State.STABLE


def test_a_client_without_an_id_is_told_one_and_joins_with_it(talk):
    told = talk.join("a", takes_id=True)
    assert (told.error, told.member_id, talk.group.state) == (Error.MEMBER_ID_REQUIRED, "a-0", State.EMPTY)
    assert talk.join("a", "a-0", takes_id=True).generation == 1


def test_an_id_that_was_given_holds_for_a_session_though_a_rebalance_has_ended_without_it(talk):
    talk.stable("a", rebalance=1000)
    told = talk.join("b", takes_id=True)
    talk.join("c", rebalance=1000)
    assert talk.join("a", talk.id_of("a"), rebalance=1000) is None
    talk.wait(1000)
    assert [talk.joined[name].generation for name in "ac"] == [2, 2]
    assert talk.join("b", told.member_id, takes_id=True) is None
    assert talk.group.state is State.PREPARING


def test_who_was_given_an_id_takes_no_static_members_place_with_it(talk):
    talk.stable("a", instance="i")
    told = talk.join("b", takes_id=True)
    assert talk.join("b", told.member_id, instance="i").error is Error.FENCED_INSTANCE_ID
    assert talk.join("b", told.member_id, instance="j").error is Error.UNKNOWN_MEMBER_ID
    assert list(talk.group.members) == [talk.id_of("a")]
    assert talk.heartbeat("a", instance="i") is Error.NONE


def test_an_id_that_was_never_given_is_unknown(talk):
    assert talk.join("a", "made-up").error is Error.UNKNOWN_MEMBER_ID
    assert talk.group.heartbeat("made-up", None, 0, 0) is Error.UNKNOWN_MEMBER_ID
    assert talk.group.state is State.EMPTY


def test_a_second_member_makes_the_first_join_again_and_only_the_leader_sees_everyone(talk):
    talk.stable("a")
    assert talk.join("b") is None
    assert talk.heartbeat("a") is Error.REBALANCE_IN_PROGRESS
    first = talk.join("a", "a-0")
    assert (first.generation, first.leader, [m[0] for m in first.members]) == (2, "a-0", ["a-0", "b-1"])
    assert (talk.joined["b"].generation, talk.joined["b"].members) == (2, ())
    assert talk.sync("b") is None
    assert talk.sync("a", {"a-0": b"0", "b-1": b"1"}).assignment == b"0"
    assert talk.synced["b"].assignment == b"1"


def test_a_rebalance_waits_for_a_client_that_was_just_given_an_id(talk):
    told = talk.join("b", takes_id=True)
    assert talk.join("a") is None
    assert talk.join("b", told.member_id, takes_id=True).generation == 1
    assert talk.joined["a"].generation == 1


def test_a_client_that_never_comes_back_with_its_id_holds_nobody_up_for_longer_than_its_session(talk):
    talk.join("b", takes_id=True)
    assert talk.join("a") is None
    talk.wait(SESSION)
    assert talk.joined["a"].generation == 1


def test_a_member_that_is_silent_for_its_session_is_removed(talk):
    talk.stable("a", "b")
    talk.wait(SESSION - 1)
    assert talk.heartbeat("a") is Error.NONE
    talk.wait(1)
    assert list(talk.group.members) == [talk.id_of("a")]
    assert talk.heartbeat("a") is Error.REBALANCE_IN_PROGRESS


def test_the_last_member_that_goes_leaves_the_group_empty_and_its_generation_counts_on(talk):
    talk.stable("a")
    assert talk.leave("a-0") is Error.NONE
    assert (talk.group.state, talk.group.generation, talk.stored) == (State.EMPTY, 2, GroupMetadata(2, "consumer"))
    assert talk.join("a").generation == 3


def test_members_that_do_not_join_again_in_time_are_left_behind(talk):
    talk.stable("a", "b", rebalance=20_000)
    talk.join("c", rebalance=20_000)
    while talk.joined.get("c") is None and talk.now < 100_000:
        talk.wait(5000)
        talk.heartbeat("a")
        talk.heartbeat("b")
    assert talk.now == 21_000
    assert list(talk.group.members) == [talk.id_of("c")]
    assert talk.heartbeat("a") is Error.UNKNOWN_MEMBER_ID


def test_a_member_that_never_asks_for_its_assignment_is_removed_although_it_heartbeats(talk):
    for name in ("a", "b", "c"):
        talk.join(name)
    talk.join("a", talk.id_of("a"))
    talk.join("b", talk.id_of("b"))
    leader = next(name for name in "abc" if talk.id_of(name) == talk.group.leader)
    late, never = sorted({"a", "b", "c"} - {leader})
    talk.sync(leader, {talk.id_of(name): b"own" for name in "abc"})
    gone = talk.id_of(never)
    for _ in range(REBALANCE // 5000 - 1):
        talk.wait(5000)
        for name in "abc":
            assert talk.heartbeat(name) is Error.NONE
    assert talk.sync(late).assignment == b"own"
    talk.wait(5000)
    assert talk.heartbeat(leader) is talk.heartbeat(late) is Error.REBALANCE_IN_PROGRESS
    assert talk.heartbeat(never) is Error.UNKNOWN_MEMBER_ID
    assert gone not in talk.group.members


def test_a_group_all_of_whose_members_have_asked_has_no_rebalance_when_its_time_is_up(talk):
    talk.join("a")
    talk.join("b")
    talk.join("a", talk.id_of("a"))
    leader, other = ("a", "b") if talk.id_of("a") == talk.group.leader else ("b", "a")
    talk.sync(leader, {talk.id_of(name): b"own" for name in "ab"})
    assert talk.sync(other).assignment == b"own"
    for _ in range(2 * REBALANCE // 5000):
        talk.wait(5000)
        assert talk.heartbeat("a") is talk.heartbeat("b") is Error.NONE


def test_members_that_joined_but_do_not_synchronize_in_time_are_removed(talk):
    talk.stable("a", rebalance=5000)
    talk.join("b", rebalance=5000)
    talk.join("a", "a-0", rebalance=5000)
    talk.sync("b")
    talk.wait(5000)
    assert talk.synced["b"].error is Error.REBALANCE_IN_PROGRESS
    assert list(talk.group.members) == [talk.id_of("b")]


def test_whoever_waits_for_an_assignment_is_told_when_a_rebalance_begins(talk):
    talk.stable("a", "b")
    talk.join("c")
    talk.join("a", talk.id_of("a"))
    talk.join("b", talk.id_of("b"))
    follower = "b" if talk.group.leader == talk.id_of("a") else "a"
    talk.sync(follower)
    talk.join("d")
    assert talk.synced[follower].error is Error.REBALANCE_IN_PROGRESS


def test_no_protocol_differs_from_one_that_is_not_chosen_yet(talk):
    talk.join("late", takes_id=True)
    talk.join("a")
    (member_id,) = talk.group.members
    answers = []
    talk.group.sync(member_id, None, 0, "consumer", "range", {}, talk.now, answers.append)
    assert [answer.error for answer in answers] == [Error.REBALANCE_IN_PROGRESS]


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_another_generation_is_refused(talk, generation):
    talk.stable("a")
    assert talk.heartbeat("a", generation) is Error.ILLEGAL_GENERATION
    assert talk.sync("a", generation=generation).error is Error.ILLEGAL_GENERATION
    with pytest.raises(KafkaError, match="ILLEGAL_GENERATION"):
        talk.group.check_commit("a-0", None, generation, talk.now)


def test_the_protocol_is_the_favourite_among_those_that_all_speak(talk):
    both = (("sticky", b"s"), ("range", b"r"))
    talk.join("a", protocols=both)
    assert talk.joined["a"].protocol == "sticky"
    talk.join("b", protocols=(("range", b"r"), ("sticky", b"s")))
    talk.join("c", protocols=(("range", b"r"), ("other", b"o"), ("sticky", b"s")))
    assert talk.join("a", "a-0", protocols=both).protocol == "range"


@pytest.mark.parametrize("instance", [None, "one"])
def test_a_member_that_is_alone_speaks_another_protocol_once_it_has_left(talk, instance):
    talk.join("a", instance=instance)
    member_id = talk.id_of("a")
    talk.sync("a", {member_id: b"all"}, instance=instance)
    for wrong in ({"protocols": (("other", b""),)}, {"kind": "connect"}):
        for named in (member_id, "") if instance else (member_id,):
            refused = talk.join("a", named, instance=instance, **wrong)
            assert refused.error is Error.INCONSISTENT_GROUP_PROTOCOL
    more = talk.join("a", member_id, instance=instance, protocols=(("other", b""), ("range", b"")))
    assert (more.error, more.protocol) == (Error.NONE, "other")
    talk.leave(member_id, instance)
    assert talk.join("a", "", instance=instance, kind="connect").protocol_type == "connect"


def test_a_member_that_shares_no_protocol_or_is_of_another_kind_is_refused(talk):
    talk.stable("a")
    for wrong in ({"protocols": (("other", b""),)}, {"kind": "connect"}, {"protocols": ()}, {"kind": ""}):
        assert talk.join("b", **wrong).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert talk.group.state is State.STABLE


def test_the_only_member_comes_again_as_what_it_was(talk):
    talk.stable("a")
    for wrong in ({"protocols": (("other", b""),)}, {"kind": "connect"}):
        assert talk.join("a", talk.id_of("a"), **wrong).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert talk.group.protocol_type == "consumer"
    assert talk.group.state is State.STABLE


def test_a_group_that_is_empty_takes_another_kind_of_member(talk):
    talk.stable("a")
    talk.leave("a-0")
    assert talk.join("b", kind="connect", protocols=(("p", b""),)).protocol_type == "connect"


def test_joining_again_unchanged_is_answered_at_once_unless_it_is_the_leader(talk):
    talk.stable("a", "b")
    leader, follower = ("a", "b") if talk.group.leader == talk.id_of("a") else ("b", "a")
    generation = talk.group.generation
    assert talk.join(follower, talk.id_of(follower)).generation == generation
    leader_id = talk.id_of(leader)
    assert talk.join(leader, leader_id) is None
    assert talk.group.state is State.PREPARING


def test_a_changed_subscription_begins_a_rebalance(talk):
    talk.stable("a", "b")
    follower = "b" if talk.group.leader == talk.id_of("a") else "a"
    member_id = talk.id_of(follower)
    assert talk.join(follower, member_id, protocols=(("range", b"others"),)) is None
    assert talk.group.state is State.PREPARING


def test_a_static_member_comes_back_without_a_rebalance_and_the_old_one_is_fenced(talk):
    talk.join("a", instance="one")
    talk.sync("a", {"a-0": b"a", "one-0": b"all"}, instance="one")
    old = talk.id_of("a")
    again = talk.join("a", instance="one")
    assert (again.generation, talk.group.state) == (1, State.STABLE)
    assert again.member_id != old
    assert again.skip_assignment
    assert talk.sync("a", instance="one").assignment == b"all"
    assert talk.group.heartbeat(old, "one", 1, talk.now) is Error.FENCED_INSTANCE_ID
    assert talk.join("x", old, instance="one").error is Error.FENCED_INSTANCE_ID


def test_a_static_member_that_tells_something_else_comes_back_without_a_rebalance(talk):
    talk.join("a", instance="one")
    talk.sync("a", {"a-0": b"a", "one-0": b"all"}, instance="one")
    again = talk.join("a", instance="one", protocols=(("range", b"its generation is over"),))
    assert (again.generation, talk.group.state) == (1, State.STABLE)
    assert talk.stored.members[0].subscription == b"its generation is over"
    assert talk.sync("a", instance="one").assignment == b"all"


def test_a_static_leader_that_cannot_skip_is_not_told_that_it_leads(talk):
    talk.join("a", instance="one")
    talk.sync("a", instance="one")
    again = talk.join("a", instance="one", takes_skip=False)
    assert again.leader != again.member_id
    assert again.members == ()


def test_a_static_member_is_made_to_leave_by_its_instance_id_alone(talk):
    talk.join("a", instance="one")
    assert talk.leave("", "two") is Error.UNKNOWN_MEMBER_ID
    assert talk.leave("", "one") is Error.NONE
    assert talk.group.state is State.EMPTY


def test_a_static_member_keeps_its_place_when_it_misses_a_rebalance_within_its_session(talk):
    talk.join("s", instance="one", rebalance=5000)
    talk.sync("s", instance="one")
    static = talk.id_of("s")
    talk.wait(4000)
    talk.join("b", rebalance=5000)
    talk.wait(5000)
    assert static in talk.group.members
    assert talk.joined["b"].leader == talk.id_of("b")


def test_anyone_commits_to_an_empty_group_and_only_members_to_another(talk):
    talk.group.check_commit("", None, -1, talk.now)
    talk.stable("a")
    talk.group.check_commit("a-0", None, 1, talk.now)
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        talk.group.check_commit("", None, -1, talk.now)


@pytest.mark.parametrize(("member_id", "instance"), [("", "one"), ("a-0", None), ("a-0", "one")])
def test_to_an_empty_group_whoever_names_no_generation_commits_whatever_else_it_says(talk, member_id, instance):
    talk.group.check_commit(member_id, instance, -1, talk.now)  # librdkafka names its instance id without a group, too
    talk.stable("a")
    with pytest.raises(KafkaError, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"):
        talk.group.check_commit(member_id, instance, -1, talk.now)
    talk.group.leave("a-0", None, talk.now)
    talk.store()
    talk.group.check_commit(member_id, instance, -1, talk.now)
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        talk.group.check_commit("a-0", None, 1, talk.now)


def test_between_joining_and_the_assignment_only_transactions_commit(talk):
    talk.join("a")
    with pytest.raises(KafkaError, match="REBALANCE_IN_PROGRESS"):
        talk.group.check_commit("a-0", None, 1, talk.now)
    talk.group.check_commit("a-0", None, 1, talk.now, in_transaction=True)
    with pytest.raises(KafkaError, match="ILLEGAL_GENERATION"):
        talk.group.check_commit("a-0", None, 0, talk.now, in_transaction=True)


def test_a_flood_of_new_members_is_bounded_and_passes(talk):
    for _ in range(MAX_MEMBERS):
        assert talk.join("f", takes_id=True).error is Error.MEMBER_ID_REQUIRED
    assert talk.join("f", takes_id=True).error is Error.GROUP_MAX_SIZE_REACHED
    talk.wait(SESSION)
    assert talk.join("f", takes_id=True).error is Error.MEMBER_ID_REQUIRED


def test_nobody_has_an_assignment_before_it_is_stored(talk):
    talk.join("a")
    talk.outcome = None
    assert talk.sync("a", {"a-0": b"all"}) is None
    assert talk.group.state is State.COMPLETING
    assert talk.heartbeat("a") is Error.NONE
    with pytest.raises(KafkaError, match="REBALANCE_IN_PROGRESS"):
        talk.group.check_commit("a-0", None, 1, talk.now)
    with pytest.raises(RuntimeError, match="before its proposal"):
        talk.group.leave("a-0", None, talk.now)
    talk.outcome = Error.NONE
    talk.store()
    assert talk.synced["a"].assignment == b"all"
    assert talk.group.state is State.STABLE


def test_an_assignment_that_cannot_be_stored_is_told_so_and_made_again(talk):
    talk.join("a")
    talk.join("b")
    talk.join("a", "a-0")
    talk.sync("b")
    talk.outcome = Error.COORDINATOR_NOT_AVAILABLE
    assert talk.sync("a", {"a-0": b"0", "b-1": b"1"}).error is Error.COORDINATOR_NOT_AVAILABLE
    assert talk.synced["b"].error is Error.COORDINATOR_NOT_AVAILABLE
    assert (talk.group.state, talk.group.members["a-0"].assignment) == (State.PREPARING, b"")
    talk.outcome = Error.NONE
    talk.join("b", "b-1")
    assert talk.join("a", "a-0").generation == 3
    assert talk.sync("a", {"a-0": b"0", "b-1": b"1"}).assignment == b"0"
    assert talk.sync("b").assignment == b"1"


def test_a_group_that_cannot_store_that_it_is_empty_tries_again_and_takes_members_meanwhile(talk):
    talk.stable("a")
    talk.outcome = Error.COORDINATOR_NOT_AVAILABLE
    talk.leave("a-0")
    assert (talk.group.state, talk.group.held_bytes) == (State.PREPARING, 0)
    talk.outcome = Error.NONE
    assert talk.group.next_deadline_ms == talk.now + STORE_AGAIN_MS
    talk.wait(STORE_AGAIN_MS)
    assert (talk.group.state, talk.stored.generation) == (State.EMPTY, 2)
    talk.stable("b")
    talk.outcome = Error.COORDINATOR_NOT_AVAILABLE
    talk.leave(talk.id_of("b"))
    assert talk.join("c").generation == talk.stored.generation + 1


def test_a_static_member_whose_new_place_cannot_be_stored_keeps_its_old_one(talk):
    talk.join("a", instance="one")
    talk.sync("a", {"a-0": b"all"}, instance="one")
    old = talk.id_of("a")
    talk.outcome = Error.COORDINATOR_NOT_AVAILABLE
    assert talk.join("a", instance="one").error is Error.COORDINATOR_NOT_AVAILABLE
    assert talk.group.heartbeat(old, "one", 1, talk.now) is Error.NONE
    talk.outcome = Error.NONE
    assert talk.join("a", instance="one").error is Error.NONE
    assert talk.group.heartbeat(old, "one", 1, talk.now) is Error.FENCED_INSTANCE_ID


def test_the_members_of_a_group_may_hold_so_much_together_and_no_more(talk):
    half = (("range", bytes(MAX_GROUP_BYTES // 2 - 10_000)),)
    talk.join("a", protocols=half)
    talk.join("b", protocols=half)
    assert talk.join("c", protocols=half).error is Error.GROUP_MAX_SIZE_REACHED
    assert talk.join("a", "a-0", protocols=half).generation == 2
    assert talk.join("c", takes_id=True).error is Error.MEMBER_ID_REQUIRED
    big = {"a-0": bytes(MAX_GROUP_BYTES // 2)}
    assert talk.sync("a", big).error is Error.UNKNOWN_SERVER_ERROR
    assert talk.group.held_bytes <= MAX_GROUP_BYTES
    talk.wait(10 * REBALANCE)
    talk.wait(10 * REBALANCE)
    assert (talk.group.state, talk.group.held_bytes) == (State.EMPTY, 0)


def settled(group):
    """What a restart must find."""
    members = {
        member_id: (m.instance_id, m.metadata(group.protocol), m.assignment) for member_id, m in group.members.items()
    }
    return group.state, group.generation, group.protocol, group.leader, members


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["join", "sync", "beat", "leave", "wait", "break"]), st.integers(0, 3), st.integers(0, 12)
        ),
        max_size=60,
    )
)
def test_whatever_happens_every_question_is_answered_in_the_end_and_the_group_rests(steps):
    """Members come, go and fall silent at random; then all fall silent, and nothing may be left waiting.

    While stores fail, it is what was stored last, or in a rebalance.
    """
    talk = Talk()
    asked = set()
    for what, who, amount in steps:
        name = "abcd"[who]
        known = name in talk.joined
        if what == "join":
            talk.join(name, talk.id_of(name) if known and amount % 3 else "", takes_id=bool(amount % 2))
            asked.add(name)
        elif what == "sync" and known:
            talk.sync(name, dict.fromkeys(talk.group.members, b"x"))
        elif what == "beat" and known:
            talk.heartbeat(name)
        elif what == "leave" and known:
            talk.leave(talk.id_of(name))
        elif what == "wait":
            talk.wait(amount * 1000)
        elif what == "break":
            talk.outcome = Error.COORDINATOR_NOT_AVAILABLE if amount % 2 else Error.NONE
        assert all(m.member_id == member_id for member_id, m in talk.group.members.items())
        if talk.group.state in (State.COMPLETING, State.STABLE):
            assert talk.group.leader in talk.group.members
            assert talk.group.protocol == "range"
        assert not (talk.group.state is State.EMPTY and talk.group.members)
        if talk.group.state in (State.EMPTY, State.STABLE):
            assert settled(talk.group) == settled(talk.restarted())
    talk.outcome = Error.NONE
    for _ in range(60):
        deadline = talk.group.next_deadline_ms
        if deadline is None:
            break
        talk.wait(max(deadline - talk.now, 0))
    assert talk.group.next_deadline_ms is None
    assert talk.group.state is State.EMPTY
    assert asked <= set(talk.joined)

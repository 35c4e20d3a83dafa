"""Who may do what: ACLs and users are what was acknowledged last, and everybody is answered by them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tests.simulation.history import Operation
from tests.simulation.judge.anomaly import Anomaly, anomaly
from tests.simulation.judge.facts import Facts
from tests.simulation.workload.guards import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
)

Acl = tuple[int, str, int, str, str, int, int]
"""Type, name, pattern, principal, host, operation, permission."""

WIDER = {DESCRIBE: (READ, WRITE, DELETE, ALTER), DESCRIBE_CONFIGS: (ALTER_CONFIGS,)}
"""Who may do one of these may do what it stands under."""

NOT_SERVED = "UNSUPPORTED_VERSION"
"""What everybody is told, whatever guards what is asked about: that this release has no such thing."""

MATCH = 2
ANYBODY, ANYWHERE, ANY_NAME = "User:*", "*", "*"


def acls(facts: Facts) -> Iterator[Anomaly]:
    """What is created is there, and what is deleted is not, after any restart; what was not acknowledged is one of
    both, whole, and stays that."""
    yield from (each for each in _Guards(facts).replay() if each.name.startswith("acl-"))


def decisions(facts: Facts) -> Iterator[Anomaly]:
    """Who is allowed something may do it, and nobody else; nothing is told of what somebody may not describe."""
    yield from (each for each in _Guards(facts).replay() if each.name.startswith("wrongly-"))


def users(facts: Facts) -> Iterator[Anomaly]:
    """Who was made comes in, with the secret that was set last; who was deleted does not."""
    known = _Users(facts)
    for operation in facts.operations.of("set_user", "logged_in"):
        yield from known.take(operation)


class _Settling:
    """Knows whether a broker was started since a call, so that nothing of it is under way any more, and what the
    broker goes by is what is on its disk."""

    def __init__(self, facts: Facts) -> None:
        self._starts = [each for each in facts.operations.of("broker_started") if each.type == "ok"]

    def settled(self, doubtful: Operation, seen: Operation) -> bool:
        return any(doubtful.ended < start.began and start.ended < seen.began for start in self._starts)


class _Guards(_Settling):
    """What is known of ACLs while a history goes on.

    Attributes:
        states: of each ACL, whether it may be there, and whether it may not.
        because: which call has told the last of it.
        together: which call has made it doubtful, of which then all is there or nothing.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.states: dict[Acl, frozenset[bool]] = {}
        self.because: dict[Acl, Operation] = {}
        self.together: dict[Acl, Operation] = {}
        self._facts = facts

    def replay(self) -> Iterator[Anomaly]:
        for operation in self._facts.operations.of("create_acls", "delete_acls", "describe_acls", "asked", "listed"):
            if operation.f == "create_acls":
                self._created(operation)
            elif operation.f == "delete_acls":
                yield from self._deleted(operation)
            elif operation.type == "ok":
                yield from getattr(self, f"_{operation.f}")(operation)

    # ACLs ------------------------------------------------------------------------------------------------------------

    def _created(self, operation: Operation) -> None:
        for acl in map(_acl, operation.value["acls"]):
            self._set(acl, operation, to=True)

    def _set(self, acl: Acl, operation: Operation, *, to: bool) -> None:
        """What a call has made of an ACL, or may have made."""
        before = self.states.get(acl, frozenset([False]))
        if operation.type == "fail" or before == {to}:
            return
        self.states[acl] = frozenset([to]) if operation.type == "ok" else before | {to}
        self.because[acl] = operation
        if len(before) == 1 and operation.type != "ok":
            self.together[acl] = operation
        else:
            self.together.pop(acl, None)

    def _deleted(self, operation: Operation) -> Iterator[Anomaly]:
        gone = set(map(_acl, operation.value.get("deleted", ())))
        for acl in [each for each in self.states if _means(operation.value["filters"], each)]:
            if operation.type == "ok":
                yield from self._seen(acl, operation, is_there=acl in gone)
            self._set(acl, operation, to=False)

    def _describe_acls(self, operation: Operation) -> Iterator[Anomaly]:
        there = set(map(_acl, operation.value["acls"]))
        settled: dict[int, list[Acl]] = {}
        for acl in dict.fromkeys(chain(self.states, sorted(there))):
            yield from self._seen(acl, operation, is_there=acl in there)
            if len(self.states.get(acl, ())) > 1 and self.settled(self.because[acl], operation):
                self.states[acl] = frozenset([acl in there])
                if (call := self.together.pop(acl, None)) is not None:
                    settled.setdefault(call.invoked.index, []).append(acl)
                    self.because[acl] = call
        for some in settled.values():
            if len({acl in there for acl in some}) > 1:
                what = "of what one request has asked for some is done, and some is not"
                yield anomaly("acl-forgotten", what, self.because[some[0]], operation)

    def _seen(self, acl: Acl, operation: Operation, *, is_there: bool) -> Iterator[Anomaly]:
        """Compares what is told of an ACL with what may be."""
        states = self.states.get(acl, frozenset([False]))
        if is_there in states:
            return
        shown = [each for each in (self.because.get(acl), operation) if each is not None]
        if is_there:
            yield anomaly("acl-back", f"{_told(acl)} is there, which was deleted, or never made", *shown)
        else:
            yield anomaly("acl-forgotten", f"{_told(acl)} was made, and is not there", *shown)
        self.states[acl] = frozenset([is_there])

    # Decisions -------------------------------------------------------------------------------------------------------

    def _asked(self, operation: Operation) -> Iterator[Anomaly]:
        value = operation.value
        due, is_allowed = self._refusals(value)
        due += [answer for answer in value["answers"] if is_allowed or answer == NOT_SERVED]
        if value["answer"] not in due:
            name = "wrongly-refused" if is_allowed else "wrongly-allowed"
            what = f"{value['user']} asked for {value['api']} of {value['about']}, and was told {value['answer']}"
            yield anomaly(name, f"{what}, not {' or '.join(dict.fromkeys(due))}", *self._about(value), operation)

    def _listed(self, operation: Operation) -> Iterator[Anomaly]:
        value = operation.value
        refusals, is_allowed = self._refusals(value)
        for name, alternatives in value["among"]:
            may, may_not = self._may(value["user"], alternatives)
            is_shown = name in value["shown"]
            if (is_shown and may and is_allowed) or (not is_shown and (may_not or refusals)):
                continue
            what = f"{value['user']} asked for {value['api']} of {value['about']}, and was"
            kind = "wrongly-allowed" if is_shown else "wrongly-refused"
            yield anomaly(kind, f"{what}{'' if is_shown else ' not'} told of {name}", *self._about(value), operation)

    def _refusals(self, value: dict) -> tuple[list[str], bool]:
        """What a user may be refused with, and whether they may be allowed all that a request needs."""
        refusals = []
        for alternatives, error in value["needs"]:
            may, may_not = self._may(value["user"], alternatives)
            refusals += [error] * may_not
            if not may:
                return refusals, False
        return refusals, True

    def _about(self, value: dict) -> list[Operation]:
        """The calls that have made, or deleted, what is about a user."""
        who = (f"User:{value['user']}", ANYBODY)
        calls = {call.invoked.index: call for acl, call in self.because.items() if acl[3] in who}
        return [calls[index] for index in sorted(calls)]

    def _may(self, user: str, alternatives: list[list]) -> tuple[bool, bool]:
        """Whether a user may be allowed any of some operations, and whether that may be refused."""
        most, least = self._if_doubtful(ALLOW), self._if_doubtful(DENY)
        may = any(_allows(most, user, *each) for each in alternatives)
        return may, not any(_allows(least, user, *each) for each in alternatives)

    def _if_doubtful(self, permission: int) -> list[Acl]:
        """The ACLs, if of those that may be there or not the ones of a permission are."""
        return [
            acl for acl, states in self.states.items() if True in states and (len(states) == 1 or acl[6] == permission)
        ]


def _allows(known: list[Acl], user: str, operation: int, kind: int, name: str | None) -> bool:
    """Whether ACLs let a user do something: to a resource, or to any of a type. Nothing is allowed that none is about.
    Source: KIP-11; of any resource KIP-679."""
    own = [each for each in known if each[0] == kind and each[3] in (f"User:{user}", ANYBODY) and each[4] == ANYWHERE]
    if name is None:
        return _allows_any([each for each in own if each[5] in (operation, ALL)])
    about = [each for each in own if _is_about(each, name)]
    if any(each[6] == DENY and each[5] in (operation, ALL) for each in about):
        return False
    return any(each[6] == ALLOW and each[5] in (operation, ALL, *WIDER.get(operation, ())) for each in about)


def _allows_any(own: list[Acl]) -> bool:
    """An ALLOW counts unless a DENY takes all that it is of."""
    denies = [each for each in own if each[6] == DENY]

    def counts(allow: Acl) -> bool:
        _, name, pattern, *_ = allow
        return not any(
            (deny[2] == LITERAL and (deny[1] == ANY_NAME or (pattern == LITERAL and deny[1] == name)))
            or (deny[2] == PREFIXED and name.startswith(deny[1]) and (pattern, name) != (LITERAL, ANY_NAME))
            for deny in denies
        )

    return any(each[6] == ALLOW and counts(each) for each in own)


def _is_about(acl: Acl, name: str) -> bool:
    return name.startswith(acl[1]) if acl[2] == PREFIXED else acl[1] in (name, ANY_NAME)


def _means(filters: list[list], acl: Acl) -> bool:
    return any(_is_meant(each, acl) for each in filters)


def _is_meant(one: list, acl: Acl) -> bool:
    kind, name, pattern, *rest = one
    if kind not in (None, acl[0]) or any(part not in (None, own) for part, own in zip(rest, acl[3:], strict=True)):
        return False
    if pattern == MATCH:
        return name is None or _is_about(acl, name)
    return pattern in (None, acl[2]) and name in (None, acl[1])


def _acl(written: list) -> Acl:
    kind, name, pattern, principal, host, operation, permission = written
    return kind, name, pattern, principal, host, operation, permission


def _told(acl: Acl) -> str:
    return f"ACL {list(acl)}"


class _Users(_Settling):
    """What is known of users while a history goes on: which secrets may be theirs, None for none."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._secrets: dict[str, frozenset[int | None]] = {}
        self._because: dict[str, Operation] = {}

    def take(self, operation: Operation) -> Iterator[Anomaly]:
        user, secret = operation.value["user"], operation.value["secret"]
        before = self._secrets.get(user, frozenset([None]))
        if operation.f == "set_user":
            yield from self._set(operation, user, secret, before)
        elif operation.type == "ok":
            yield from self._logged_in(operation, user, secret, before)

    def _set(
        self, operation: Operation, user: str, secret: int | None, before: frozenset[int | None]
    ) -> Iterator[Anomaly]:
        if operation.type == "fail":
            error = operation.value.get("error") or {}
            if error.get("code") == "RESOURCE_NOT_FOUND" and None not in before:
                yield anomaly("user-forgotten", f"{user} was made, and is not there", self._because[user], operation)
            return
        self._secrets[user] = frozenset([secret]) if operation.type == "ok" else before | {secret}
        self._because[user] = operation

    def _logged_in(
        self, operation: Operation, user: str, secret: int | None, before: frozenset[int | None]
    ) -> Iterator[Anomaly]:
        is_in = operation.value["answer"]
        because = self._because.get(user)
        shown = [operation] if because is None else [because, operation]
        if is_in and secret not in before:
            yield anomaly("user-let-in", f"{user} came in with secret {secret}, which is not theirs", *shown)
            self._secrets[user] = frozenset([secret])
        elif not is_in and before == {secret}:
            yield anomaly("user-forgotten", f"{user} did not come in with secret {secret}, which was set last", *shown)
            self._secrets[user] = frozenset([None])
        elif because is not None and len(before) > 1 and self.settled(because, operation):
            self._secrets[user] = frozenset([secret]) if is_in else before - {secret}

"""The ACLs of a broker, found by what they are about: a request is decided without reading through all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from tagwire.broker.authorization.acls import (
    ANYBODY,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tagwire.broker.authorization.host_networks import HostNetworks

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Who is allowed one of these is allowed what it stands under; who is denied one is not denied more."""

MOST_REMEMBERED: Final = 1000


class Verdict(Enum):
    """What ACLs say of an operation. NOTHING: there is none about the resource."""

    DENIED = "denied"
    ALLOWED = "allowed"
    NOTHING = "nothing"


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_ALLOWS: Final = {each: _bits(each, Operation.ALL, *_IMPLIED_BY.get(each, ())) for each in Operation}
_DENIES: Final = {each: _bits(each, Operation.ALL) for each in Operation}


class _Pattern:
    """What the ACLs of one pattern say: by principal and host, the operations denied and allowed, a bit for each."""

    __slots__ = ("grants",)

    def __init__(self) -> None:
        self.grants: dict[tuple[str, str], tuple[int, int]] = {}

    def set(self, acl: Acl, *, to: bool) -> None:
        who = acl.principal, acl.host
        bits = list(self.grants.get(who, (0, 0)))
        place = acl.permission is Permission.ALLOW
        bits[place] = bits[place] | _bits(acl.operation) if to else bits[place] & ~_bits(acl.operation)
        if any(bits):
            self.grants[who] = bits[0], bits[1]
        else:
            self.grants.pop(who, None)

    def of(self, principal: str, hosts: Iterable[str]) -> tuple[int, int]:
        """The operations denied and allowed to a principal, by name or as one of all, at hosts as ACLs write them."""
        denied = allowed = 0
        for host in hosts:
            for who in ((principal, host), (ANYBODY, host)):
                bits = self.grants.get(who)
                if bits is not None:
                    denied |= bits[0]
                    allowed |= bits[1]
        return denied, allowed


class _Patterns:
    """The patterns of one resource type."""

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}
        self.prefixed: dict[str, _Pattern] = {}
        self.lengths: Counter[int] = Counter()

    def set(self, acl: Acl, *, to: bool) -> None:
        named = self.literal if acl.pattern is PatternType.LITERAL else self.prefixed
        pattern = named.get(acl.name)
        if pattern is None:
            pattern = named[acl.name] = _Pattern()
            if named is self.prefixed:
                self.lengths[len(acl.name)] += 1
        pattern.set(acl, to=to)
        if not pattern.grants:
            del named[acl.name]
            if named is self.prefixed:
                self.lengths[len(acl.name)] -= 1
                self.lengths += Counter()  # lengths that nothing has any more are left out

    def about(self, name: str) -> Iterator[_Pattern]:
        for literal in (name, WILDCARD) if name != WILDCARD else (name,):
            if (found := self.literal.get(literal)) is not None:
                yield found
        for length in self.lengths:
            if length <= len(name) and (found := self.prefixed.get(name[:length])) is not None:
                yield found


class AclIndex:
    """ACLs, none of them twice. How long a decision takes grows with the lengths of the prefixes that there are, of
    names and of networks, and not with how many ACLs there are.

    Args:
        with_networks: whether a host may be a network; else all are compared as text.
    """

    def __init__(self, *, with_networks: bool = True) -> None:
        self._networks = HostNetworks() if with_networks else None
        self._acls: dict[Acl, None] = {}
        self._patterns = {kind: _Patterns() for kind in ResourceType}
        self._of_any: dict[tuple[str, str, Operation, ResourceType], Verdict] = {}

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        """Take an ACL in."""
        if acl not in self._acls:
            self._acls[acl] = None
            self._patterns[acl.kind].set(acl, to=True)
            if self._networks is not None:
                self._networks.add(acl.host)
            self._of_any.clear()

    def remove(self, acl: Acl) -> None:
        """Take an ACL out."""
        if acl in self._acls:
            del self._acls[acl]
            self._patterns[acl.kind].set(acl, to=False)
            if self._networks is not None:
                self._networks.remove(acl.host)
            self._of_any.clear()

    def matching(self, meant: AclFilter) -> list[Acl]:
        """The ACLs that a filter means, in the order in which they came."""
        only = meant.only
        if only is not None:
            return [only] if only in self._acls else []
        return [acl for acl in self._acls if meant.matches(acl)]

    def decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> Verdict:
        """What the ACLs say of an operation on one resource. Source: Kafka's StandardAuthorizerData."""
        denies, allows = _DENIES[operation], _ALLOWS[operation]
        verdict = Verdict.NOTHING
        is_allowed = False
        hosts = self._hosts(host)
        for pattern in self._patterns[kind].about(name):
            denied, allowed = pattern.of(principal, hosts)
            if denied & denies:
                return Verdict.DENIED
            is_allowed = is_allowed or bool(allowed & allows)
            verdict = Verdict.DENIED
        return Verdict.ALLOWED if is_allowed else verdict

    def _hosts(self, host: str) -> tuple[str, ...]:
        """An address as ACLs may write it."""
        return (host, WILDCARD) if self._networks is None else (host, WILDCARD, *self._networks.around(host))

    def decide_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> Verdict:
        """Whether an operation is allowed on any resource of a type; none is taken to imply another. Source: Kafka's
        Authorizer.authorizeByResourceType."""
        asked = principal, host, operation, kind
        known = self._of_any.get(asked)
        if known is None:
            if len(self._of_any) >= MOST_REMEMBERED:
                self._of_any.clear()
            known = self._of_any[asked] = self._find_any(*asked)
        return known

    def _find_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> Verdict:
        bits = _bits(operation, Operation.ALL)
        patterns = self._patterns[kind]
        hosts = self._hosts(host)
        literal = {name: pattern.of(principal, hosts) for name, pattern in patterns.literal.items()}
        prefixed = {name: pattern.of(principal, hosts) for name, pattern in patterns.prefixed.items()}
        of_all = literal.get(WILDCARD, (0, 0))
        if of_all[0] & bits:
            return Verdict.DENIED
        if of_all[1] & bits:
            return Verdict.ALLOWED
        denied = {name for name, (denied, _) in prefixed.items() if denied & bits}
        lengths = {len(name) for name in denied}
        allowed = [name for name, (no, yes) in literal.items() if yes & bits and not no & bits]
        allowed += [name for name, (_, yes) in prefixed.items() if yes & bits]
        if any(all(name[:length] not in denied for length in lengths if length <= len(name)) for name in allowed):
            return Verdict.ALLOWED
        return Verdict.DENIED

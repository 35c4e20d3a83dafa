"""The options of `tagwire acls` in the words of kafka-acls, and which ACLs they mean.

Source: Kafka's AclCommand, AclEntry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Final, Self

import typer

from tagwire.cli import completing
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.client import AclBinding, AclBindingFilter

PATTERNS: Final = ("literal", "prefixed")
PATTERNS_OF_FILTERS: Final = ("any", "match")

OPERATIONS: Final = {
    "topic": ("read", "write", "create", "describe", "delete", "alter", "describe_configs", "alter_configs", "all"),
    "group": ("read", "describe", "delete", "describe_configs", "alter_configs", "all"),
    "cluster": (
        "create",
        "cluster_action",
        "describe_configs",
        "alter_configs",
        "idempotent_write",
        "alter",
        "describe",
        "all",
    ),
    "transactional_id": ("describe", "write", "two_phase_commit", "all"),
    "delegation_token": ("describe", "all"),
    "user": ("create_tokens", "describe_tokens", "all"),
}
"""What can be done to a resource, by its type."""

_CLUSTER: Final = ("cluster", "kafka-cluster")
_KNOWN: Final = tuple(sorted({operation for known in OPERATIONS.values() for operation in known}))

Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", autocompletion=completing.topics, help="A topic; may be repeated."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", autocompletion=completing.groups, help="A group; may be repeated."),
]
TransactionalIds = Annotated[
    list[str] | None, typer.Option("--transactional-id", metavar="ID", help="A transactional id; may be repeated.")
]
DelegationTokens = Annotated[
    list[str] | None, typer.Option("--delegation-token", metavar="ID", help="A delegation token; may be repeated.")
]
UserPrincipals = Annotated[
    list[str] | None,
    typer.Option("--user-principal", metavar="TYPE:NAME", help="A user whose tokens it is about; may be repeated."),
]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
AllowPrincipals = Annotated[
    list[str] | None,
    typer.Option("--allow-principal", metavar="TYPE:NAME", help="Who may, such as User:alice; may be repeated."),
]
DenyPrincipals = Annotated[
    list[str] | None, typer.Option("--deny-principal", metavar="TYPE:NAME", help="Who may not; may be repeated.")
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="ADDRESS",
        help="From where they may, or, from Kafka 4.4 on, in which network; without it wherever they are.",
    ),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--deny-host", metavar="ADDRESS", help="From where they may not; without it wherever they are."),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        metavar="NAME",
        autocompletion=completing.of(*_KNOWN),
        help="What they may do, such as read or alter_configs; may be repeated.",
    ),
]
Producer = Annotated[
    bool,
    typer.Option("--producer", help="What a producer does: writes to the topics, with the transactional ids if any."),
]
Consumer = Annotated[bool, typer.Option("--consumer", help="What a consumer does: reads the topics in the groups.")]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: may number its records, as before Kafka 2.8 takes.")
]


@dataclass(frozen=True)
class Resources:
    """What ACLs are about: (type, name) pairs, in the order of the options."""

    named: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        topics: Sequence[str] | None,
        groups: Sequence[str] | None,
        transactional_ids: Sequence[str] | None,
        delegation_tokens: Sequence[str] | None,
        user_principals: Sequence[str] | None,
        cluster: bool,
    ) -> Self:
        by_type = {
            "topic": topics,
            "group": groups,
            "transactional_id": transactional_ids,
            "delegation_token": delegation_tokens,
            "user": user_principals,
        }
        named = [(kind, name) for kind, names in by_type.items() for name in names or ()]
        return cls((*named, *((_CLUSTER,) if cluster else ())))


@dataclass(frozen=True)
class Who:
    """(permission, principal, host) triples."""

    principals: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(
        cls,
        allowed: Sequence[str] | None,
        denied: Sequence[str] | None,
        allow_hosts: Sequence[str] | None,
        deny_hosts: Sequence[str] | None,
    ) -> Self:
        """Raises typer.BadParameter for hosts without anybody."""
        for hosts, principals, option in ((allow_hosts, allowed, "allow"), (deny_hosts, denied, "deny")):
            if hosts and not principals:
                raise typer.BadParameter(f"it needs --{option}-principal", param_hint=f"'--{option}-host'")
        found = [
            *product(("allow",), allowed or (), allow_hosts or ("*",)),
            *product(("deny",), denied or (), deny_hosts or ("*",)),
        ]
        return cls(tuple(found))


@dataclass(frozen=True)
class Roles:
    """What --producer and --consumer stand for: operations by resource."""

    chosen: tuple[tuple[tuple[str, str], str], ...]

    @classmethod
    def of(
        cls, producer: bool, consumer: bool, idempotent: bool, resources: Resources, operations: Sequence[str] | None
    ) -> Self:
        """Raises typer.BadParameter: they lack a resource, or have one or an operation too much."""
        if not (producer or consumer):
            if idempotent:
                raise typer.BadParameter("it goes with --producer", param_hint="'--idempotent'")
            return cls(())
        option = "'--producer'" if producer else "'--consumer'"
        types = {kind for kind, _ in resources.named}
        if operations:
            raise typer.BadParameter("it says itself which operations; leave --operation out", param_hint=option)
        if "topic" not in types:
            raise typer.BadParameter("it needs a --topic", param_hint=option)
        if consumer and "group" not in types:
            raise typer.BadParameter("it needs a --group", param_hint="'--consumer'")
        meant = {"topic", *(("transactional_id",) if producer else ()), *(("group",) if consumer else ())}
        if types - meant:
            raise typer.BadParameter(f"it is not about a {sorted(types - meant)[0]}", param_hint=option)
        done: dict[str, list[str]] = {
            "topic": ["describe"],
            "group": ["read"],
            "transactional_id": ["describe", "write"],
        }
        done["topic"] += ["write", "create"] if producer else []
        done["topic"] += ["read"] if consumer else []
        chosen = [(named, operation) for named in resources.named for operation in done[named[0]]]
        return cls((*chosen, *(((_CLUSTER, "idempotent_write"),) if idempotent else ())))


def bindings(
    resources: Resources, pattern_type: str, who: Who, operations: Sequence[str], roles: Roles
) -> list[AclBinding]:
    """The ACLs to add. Raises typer.BadParameter."""
    from tagwire.client import AccessControlEntry, AclBinding, ResourcePattern

    pattern_type = _pattern_type(pattern_type, PATTERNS)
    if not who.principals:
        raise typer.BadParameter("say who: --allow-principal or --deny-principal")
    return [
        AclBinding(
            ResourcePattern(kind, name, "literal" if kind == "cluster" else pattern_type),
            AccessControlEntry(principal, operation, permission, host),
        )
        for (kind, name), operation in _done(resources, operations or ["all"], roles)
        for permission, principal, host in who.principals
    ]


def removed(
    resources: Resources, pattern_type: str, who: Who, operations: Sequence[str], roles: Roles
) -> list[AclBindingFilter]:
    """Which ACLs to remove. Raises typer.BadParameter."""
    from tagwire.client import AccessControlEntryFilter, AclBindingFilter, ResourcePatternFilter

    pattern_type = _pattern_type(pattern_type, (*PATTERNS, *PATTERNS_OF_FILTERS))
    for permission, principal, _ in who.principals:
        _check_principal(principal, f"--{permission}-principal")
    if resources.named:
        # What is said of somebody without an operation is about all operations, as in `add`: others are other ACLs.
        unsaid = "all" if who.principals else "any"
        about: list[tuple[tuple[str, str | None], str]] = [*_done(resources, operations or [unsaid], roles)]
    else:
        about = [(("any", None), _operation(each)) for each in operations or ["any"]]
    people = who.principals or (("any", None, None),)
    return [
        AclBindingFilter(
            ResourcePatternFilter(kind, name, pattern_type if name is not None and kind != "cluster" else "any"),
            AccessControlEntryFilter(principal, operation, permission, host),
        )
        for (kind, name), operation in about
        for permission, principal, host in people
    ]


def filters(resources: Resources, pattern_type: str, principals: Sequence[str]) -> list[AclBindingFilter]:
    """Which ACLs to list. Raises typer.BadParameter."""
    from tagwire.client import AccessControlEntryFilter, AclBindingFilter, ResourcePatternFilter

    pattern_type = _pattern_type(pattern_type, (*PATTERNS, *PATTERNS_OF_FILTERS))
    for principal in principals:
        _check_principal(principal, "--principal")
    about: Sequence[tuple[str, str | None]] = resources.named or [("any", None)]
    return [
        AclBindingFilter(ResourcePatternFilter(kind, name, pattern_type), AccessControlEntryFilter(principal))
        for kind, name in about
        for principal in principals or (None,)
    ]


def _done(resources: Resources, operations: Sequence[str], roles: Roles) -> list[tuple[tuple[str, str], str]]:
    """What is done to which resource."""
    if roles.chosen:
        return list(roles.chosen)
    if not resources.named:
        raise typer.BadParameter("name what it is about: --topic, --group, --transactional-id, --cluster, ...")
    found = []
    for kind, name in resources.named:
        for given in operations:
            operation = _operation(given)
            if operation not in (*OPERATIONS[kind], "any"):
                said = f"{operation} is not done to a {kind}: there are {', '.join(OPERATIONS[kind])}"
                raise typer.BadParameter(said, param_hint="'--operation'")
            found.append(((kind, name), operation))
    return found


def _operation(given: str) -> str:
    """An operation by its name, however it is written: AlterConfigs, alter-configs, ALTER_CONFIGS."""
    folded = {name.replace("_", ""): name for name in (*_KNOWN, "any")}
    found = folded.get(given.lower().replace("_", "").replace("-", ""))
    if found is None:
        said = did_you_mean(given, _KNOWN) or f": there are {', '.join(_KNOWN)}"
        raise typer.BadParameter(f"{given!r} is no operation{said}", param_hint="'--operation'")
    return found


def _check_principal(given: str, option: str) -> None:
    """Raises typer.BadParameter for what nobody is called: no ACL is of it, and that would pass for an answer."""
    kind, _, name = given.partition(":")
    if not (kind and name):
        raise typer.BadParameter(f"{given!r} is not TYPE:NAME, such as User:alice", param_hint=f"'{option}'")


def _pattern_type(given: str, allowed: Sequence[str]) -> str:
    if given.lower() not in allowed:
        said = f"{given!r} is none of {', '.join(allowed)}"
        raise typer.BadParameter(said, param_hint="'--resource-pattern-type'")
    return given.lower()

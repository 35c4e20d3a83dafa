"""The settings of a broker."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Final, Literal, TypedDict, get_args

from tagwire.broker.bearer_tokens import TokenValidator
from tagwire.broker.groups.group_settings import GroupSettings, Migration
from tagwire.broker.network.listener import Listener, is_whole
from tagwire.broker.partition import Fsync
from tagwire.broker.storage.data_directory import MAX_PARTITIONS
from tagwire.errors import ConfigError
from tagwire.records import HeaderRegister
from tagwire.rpc import OAUTHBEARER, ranges_of
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES
from tagwire.rpc.sasl import credential_fault
from tagwire.rpc.version_gates import CONSUMER_GROUP_HEARTBEAT_MEMBER_ID, END_TXN_TRANSACTION_V2
from tagwire.spec import releases
from tagwire.spec.api_keys import ApiKey

logger = logging.getLogger("tagwire.broker")

OLDER_EPOCHS_SINCE: Final = "4.3"
"""The first release that takes commits of members of KIP-848 in an older epoch (KIP-1251)."""

NETWORK_ACLS_SINCE: Final = "4.4"
"""The first release to which the host of an ACL may be a network (KIP-1276); to older ones it is a text like any."""

MOST_GROUP_S: Final = (2**31 - 1) // 1000
"""How many seconds members of groups can be told, in milliseconds of 32 bits."""

Unsupported = Literal["close", "empty"]
AuthorizerName = Literal["StandardAuthorizer"]


class Options(TypedDict, total=False):
    """The settings that are neither a directory nor an address, for signatures."""

    users: Mapping[str, str]
    authorizer: AuthorizerName | None
    super_users: str
    allow_everyone_if_no_acl_found: bool
    fsync: Fsync
    num_partitions: int
    auto_create_topics: bool
    unsupported: Unsupported
    as_release: str | None
    max_frame_bytes: int
    max_connections: int
    max_connections_per_address: int
    max_in_flight_bytes: int
    max_topics: int
    max_partitions: int
    max_groups: int
    max_groups_bytes: int
    group_session_timeout_s: float
    group_heartbeat_interval_s: float
    group_migration: Migration
    idle_timeout_s: float
    max_reauth_s: float
    oauthbearer_validator: TokenValidator | None
    requests_kept: int
    register: HeaderRegister


@dataclass(frozen=True, slots=True)
class Settings:
    """How a broker is to run.

    Attributes:
        data_dir: where topics are kept; None keeps them in a temporary directory, until the broker stops.
        listeners: where clients connect.
        users: {name: password} of those who may come in where a listener has `sasl`; where none has, everybody may,
            and that is logged. Never shown.
        authorizer: what decides who may do what: "StandardAuthorizer", by ACLs, as Kafka's of that name; None lets
            everybody do everything.
        super_users: principals that may do everything, whatever ACLs say, with semicolons: "User:admin;User:bob".
        allow_everyone_if_no_acl_found: whether everybody may do what no ACL is about.
        fsync: what an acknowledgement of acks=1 or all promises. "batch": the records are on the disk, one fsync serves
            every batch that waits; what a reader sees is on the disk too. "interval": they are with the operating
            system, and on the disk within a second; a crash of the machine can lose that second, but nothing of a
            transaction that was ended. "never": they are with the operating system, which decides; a crash of the
            machine can lose more. A crash of the broker alone (kill -9) loses nothing in any of them.
        num_partitions: how many partitions a topic gets that is created without saying.
        auto_create_topics: whether a request for the metadata of a missing topic creates it, when the client agrees.
        unsupported: what becomes of a request that is not served: "close" closes the connection, as Kafka does; "empty"
            sends a response of nothing but its correlation id.
        as_release: serve nothing that the brokers of this release of Kafka did not, such as "2.8"; None serves all.
        max_frame_bytes: the largest request; a larger one closes the connection before it is read.
        max_connections, max_connections_per_address: how many there may be; more are closed at once. All together never
            take more than half of the files that the process may open.
        max_in_flight_bytes: how much all connections together may hold in requests that have no response yet and
            responses that are not read yet. Each node of a cluster has these three bounds for itself.
        max_topics, max_partitions, max_groups: how many there may be in all; a request for more is refused.
        max_groups_bytes: how much memory all groups together may take, with what their members say of themselves and
            are assigned, and their offsets; what would need more is refused.
        group_session_timeout_s, group_heartbeat_interval_s: of members of KIP-848, which have them from the broker: how
            long one may be silent, and how often it is told to heartbeat.
        group_migration: which groups may change their protocol while they have members: "upgrade", from the classic one
            to KIP-848's when a member of it joins, "downgrade", back when the last one has gone, "bidirectional", both,
            or "disabled".
        idle_timeout_s: how long a connection may be silent, or busy with one request that never ends, or not read its
            responses, before it is closed.
        max_reauth_s: how long a client that has authenticated may go on before it does so again, on the same connection
            (KIP-368); 0 for as long as the connection, or its token. Kafka's connections.max.reauth.ms.
        oauthbearer_validator: called with each bearer token in the broker's thread, where a listener has OAUTHBEARER;
            gives whom it stands for, or raises AuthenticationError. A plain function, and a quick one: all wait for it.
            One with a parameter `extensions` is given what the client sent beside the token (KIP-342).
        requests_kept: how many of the latest requests are kept one by one, for whoever looks into who requested what.
        register: the names of int header keys, by which topics of the int-headers dialect are bridged to clients that
            do not speak it.

    Raises:
        ConfigError: a setting is wrong; the text says which, and what is allowed.
    """

    data_dir: Path | None = None
    listeners: tuple[Listener, ...] = (Listener(),)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    authorizer: AuthorizerName | None = None
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False
    fsync: Fsync = "batch"
    num_partitions: int = 1
    auto_create_topics: bool = True
    unsupported: Unsupported = "close"
    as_release: str | None = None
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    max_connections: int = 10_000
    max_connections_per_address: int = 5_000
    max_in_flight_bytes: int = 1 << 29
    max_topics: int = 10_000
    max_partitions: int = 20_000
    max_groups: int = 10_000
    max_groups_bytes: int = 1 << 28
    group_session_timeout_s: float = 45.0
    group_heartbeat_interval_s: float = 5.0
    group_migration: Migration = "bidirectional"
    idle_timeout_s: float = 600.0
    max_reauth_s: float = 0.0
    oauthbearer_validator: TokenValidator | None = field(default=None, repr=False)
    requests_kept: int = 10_000
    register: HeaderRegister = field(default_factory=HeaderRegister, repr=False)

    def __post_init__(self) -> None:
        self._check("listeners", bool(self.listeners), "one or more")
        if not isinstance(self.users, Mapping):
            raise ConfigError(f'users: a dict of names and passwords, {{"alice": "..."}}, not {_kind(self.users)}')
        for user, password in self.users.items():
            # An empty one is what an unset variable of a shell leaves, and lets everybody in by SCRAM.
            if not isinstance(user, str) or not isinstance(password, str) or not user or not password:
                raise ConfigError(f"users: {user!r} needs a name and a password, texts that are not empty")
            for what, given in (("name", user), ("password", password)):
                if (fault := credential_fault(given)) is not None:  # nobody could log in with it
                    raise ConfigError(f"users: the {what} of {user!r} {fault}")
        self._check_authorizer()
        self._check("auto_create_topics", isinstance(self.auto_create_topics, bool), "True or False")
        self._check("as_release", isinstance(self.as_release, (str, NoneType)), 'text, such as "2.8"')
        if not isinstance(self.register, HeaderRegister):
            raise ConfigError(f"register: a HeaderRegister, not {_kind(self.register)}")
        for name in _WHOLE:
            self._check(name, is_whole(getattr(self, name)), "a whole number")
            object.__setattr__(self, name, int(getattr(self, name)))  # the wire takes Python's own alone
        for name in _SECONDS:
            timeout = getattr(self, name)
            self._check(name, isinstance(timeout, Real) and not isinstance(timeout, bool), "a number of seconds")
            may_be_none = name == "max_reauth_s"
            self._check(name, timeout > 0 or (may_be_none and timeout == 0), f"{'0 or ' * may_be_none}more than 0")
            object.__setattr__(self, name, float(timeout))
        for name in ("group_session_timeout_s", "group_heartbeat_interval_s"):
            self._check(name, getattr(self, name) <= MOST_GROUP_S, f"at most {MOST_GROUP_S}")
        self._check("fsync", self.fsync in get_args(Fsync), " or ".join(get_args(Fsync)))
        self._check("unsupported", self.unsupported in get_args(Unsupported), " or ".join(get_args(Unsupported)))
        self._check("group_migration", self.group_migration in get_args(Migration), " or ".join(get_args(Migration)))
        self._check(
            "group_heartbeat_interval_s",
            self.group_heartbeat_interval_s < self.group_session_timeout_s,
            f"less than group_session_timeout_s, {self.group_session_timeout_s}",
        )
        self._check("num_partitions", 1 <= self.num_partitions <= MAX_PARTITIONS, f"1 to {MAX_PARTITIONS}")
        self._check("max_frame_bytes", self.max_frame_bytes >= 1024, "1024 or more")
        for name in ("max_in_flight_bytes", "max_groups_bytes"):
            self._check(name, getattr(self, name) >= 1 << 20, f"{1 << 20} or more")
        for name in ("max_connections", "max_connections_per_address", "max_topics", "max_partitions", "max_groups"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        self._check("requests_kept", self.requests_kept >= 0, "0 or more")
        if self.as_release is not None:
            ranges_of(self.as_release)
        self._check_authentication()

    def _check_authorizer(self) -> None:
        self._check("authorizer", self.authorizer in (None, *get_args(AuthorizerName)), "StandardAuthorizer or None")
        self._check("super_users", isinstance(self.super_users, str), 'text, such as "User:admin;User:bob"')
        for principal in self.super_user_set:
            self._check("super_users", ":" in principal, 'principals such as "User:admin", with semicolons')
        may_all = self.allow_everyone_if_no_acl_found
        self._check("allow_everyone_if_no_acl_found", isinstance(may_all, bool), "True or False")
        if self.authorizer is None and (self.super_users or may_all):
            name = "super_users" if self.super_users else "allow_everyone_if_no_acl_found"
            raise ConfigError(f'{name}: needs authorizer="StandardAuthorizer"; without it everybody may do everything')

    @property
    def super_user_set(self) -> frozenset[str]:
        """The principals of `super_users`."""
        return frozenset(each for each in map(str.strip, self.super_users.split(";")) if each)

    @property
    def groups(self) -> GroupSettings:
        """Those of groups of KIP-848."""
        session_ms, interval_ms = (
            max(int(seconds * 1000), 1) for seconds in (self.group_session_timeout_s, self.group_heartbeat_interval_s)
        )
        newer = self._is_since(OLDER_EPOCHS_SINCE)
        return GroupSettings(session_ms, interval_ms, self.group_migration, newer, newer)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether groups of KIP-848 are switched on, as they are from Kafka 4.0 on. Brokers of 3.7 to 3.9 list the
        APIs, and refuse them unless told otherwise."""
        if self.as_release is None:
            return True
        _, highest = ranges_of(self.as_release).get(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 0))
        return highest >= CONSUMER_GROUP_HEARTBEAT_MEMBER_ID

    @property
    def has_transaction_v2(self) -> bool:
        """Whether transactions are of version 2 (KIP-890), as they are from Kafka 4.0 on."""
        if self.as_release is None:
            return True
        _, highest = ranges_of(self.as_release).get(ApiKey.END_TXN, (0, 0))
        return highest >= END_TXN_TRANSACTION_V2

    @property
    def has_network_acls(self) -> bool:
        """Whether the host of an ACL may be a network (KIP-1276)."""
        return self._is_since(NETWORK_ACLS_SINCE)

    def _is_since(self, release: str) -> bool:
        """Whether it acts as a release of Kafka, or a newer one."""
        names = releases.names()
        return self.as_release is None or names.index(releases.row_of(self.as_release)) >= names.index(release)

    def _check_authentication(self) -> None:
        mechanisms = {mechanism for listener in self.listeners for mechanism in listener.sasl}
        validator = self.oauthbearer_validator
        if validator is not None and not callable(validator):
            raise ConfigError(f"oauthbearer_validator: needs a function of a token, not {_kind(validator)}")
        if OAUTHBEARER in mechanisms and validator is None:
            raise ConfigError("oauthbearer_validator: missing; a listener asks for tokens")
        # Where somebody can come in without a password, users for SCRAM can be set later.
        is_open = OAUTHBEARER in mechanisms or not all(listener.sasl for listener in self.listeners)
        if not self.users and mechanisms - {OAUTHBEARER} and ("PLAIN" in mechanisms or not is_open):
            raise ConfigError("users: missing; a listener asks who its clients are")
        if self.users and not mechanisms:
            logger.warning("users: nobody is asked who he is, and everybody let in: no listener has sasl")

    def _check(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise ConfigError(f"{name}={getattr(self, name)!r} is not {allowed}")


_WHOLE: Final = tuple(entry.name for entry in fields(Settings) if entry.type == "int")
_SECONDS: Final = tuple(entry.name for entry in fields(Settings) if entry.type == "float")


def _kind(given: object) -> str:
    return type(given).__name__

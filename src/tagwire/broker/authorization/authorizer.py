"""Decides what a principal may do, as Kafka's StandardAuthorizer does, by ACLs that are kept in the data directory.

A deny wins over every allow; without an ACL about a resource nobody may do anything to it but the super users, or
everybody, where the broker was told so. Source: KIP-11, Kafka's StandardAuthorizer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from itertools import chain
from pathlib import Path
from typing import Final

from tagwire.broker.authorization.acl_file import FILE, AclFile, size_of
from tagwire.broker.authorization.acl_index import AclIndex, Verdict
from tagwire.broker.authorization.acls import Acl, AclFilter, Operation, ResourceType
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.storage.files import Files
from tagwire.errors import Error, KafkaError, StorageError

MOST_BYTES: Final = 16 << 20
"""How many bytes all ACLs together may have, as they are written down: a hundred thousand and more of usual ones."""

MOST_CHANGES: Final = 10_000
"""How many ACLs one request may create or delete. Source: Kafka's QuorumController."""

MOST_SEARCHES: Final = 1000
"""How many filters of one request may mean several ACLs each: every one of them is held against all ACLs."""


class Authorizer:
    """What decides, on the event loop of its broker.

    Args:
        files, directory: where ACLs are kept.
        executor: whose thread writes them.
        super_users: principals that may do everything, whatever ACLs say.
        allow_if_none: whether everybody may do what no ACL is about (`allow.everyone.if.no.acl.found`).
        with_networks: whether the host of an ACL may be a network (KIP-1276).

    Attributes:
        version: another one whenever the ACLs are others.
        with_networks: as given.
    """

    def __init__(
        self,
        files: Files,
        directory: Path,
        executor: Executor,
        super_users: Iterable[str],
        *,
        allow_if_none: bool,
        with_networks: bool,
    ) -> None:
        self._file = AclFile(files, directory)
        self._executor = executor
        self._super_users = frozenset(super_users)
        self._allow_if_none = allow_if_none
        self.with_networks = with_networks
        self._acls = AclIndex(with_networks=with_networks)
        self._bytes = 0
        self.version = 0
        self._serial = SerialTasks()

    def load(self) -> None:
        """Read the ACLs.

        Raises:
            StorageError: they cannot be read, or are broken.
        """
        for acl in self._file.load():
            self._acls.add(acl)
            self._bytes += size_of(acl)

    def allows(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether a principal at a host may do an operation to a resource."""
        if principal in self._super_users:
            return True
        verdict = self._acls.decide(principal, host, operation, kind, name)
        return verdict is Verdict.ALLOWED or (verdict is Verdict.NOTHING and self._allow_if_none)

    def allows_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether a principal at a host may do an operation to any resource of a type."""
        # Of a name that nobody has given a resource only super users, wildcards and what holds for all decide.
        return (
            self.allows(principal, host, operation, kind, "hardcode")
            or self._acls.decide_any(principal, host, operation, kind) is Verdict.ALLOWED
        )

    def matching(self, meant: AclFilter) -> list[Acl]:
        """The ACLs that a filter means."""
        return self._acls.matching(meant)

    async def create(self, acls: Sequence[Acl]) -> None:
        """Add ACLs, all of them or none; one that is there already stays. They are on the disk then.

        Raises:
            KafkaError: POLICY_VIOLATION: they would be too many.
            StorageError: the disk refused.
        """
        await self._serial.run(FILE, self._create(acls))

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """Delete what filters mean, all of it or nothing; what each meant, which may be the same. It is on the disk
        then.

        Raises:
            KafkaError: POLICY_VIOLATION: they are too many at once.
            StorageError: the disk refused.
        """
        return await self._serial.run(FILE, self._delete(filters))

    async def _create(self, acls: Sequence[Acl]) -> None:
        added = [acl for acl in dict.fromkeys(acls) if acl not in self._acls]
        _check_number(added)
        size = self._bytes + sum(map(size_of, added))
        if size > MOST_BYTES:
            problem = f"all ACLs together may have {MOST_BYTES} bytes"
            raise KafkaError(Error.POLICY_VIOLATION, f"{problem}: with these they would have {size}")
        await self._save(added, (), chain(self._acls, added), size)
        for acl in added:
            self._acls.add(acl)
        self.version += bool(added)

    async def _delete(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        if sum(meant.only is None for meant in filters) > MOST_SEARCHES:
            problem = f"more than {MOST_SEARCHES} filters that may mean several ACLs"
            raise KafkaError(Error.POLICY_VIOLATION, problem)
        found = []
        for meant in filters:
            found.append(self._acls.matching(meant))
            if meant.only is None:
                await asyncio.sleep(0)  # other clients come in between
        removed = list(dict.fromkeys(acl for acls in found for acl in acls))
        _check_number(removed)
        going = set(removed)
        left = (acl for acl in self._acls if acl not in going)
        await self._save((), removed, left, self._bytes - sum(map(size_of, removed)))
        for acl in removed:
            self._acls.remove(acl)
        self.version += bool(removed)
        return found

    async def _save(self, added: Sequence[Acl], removed: Sequence[Acl], in_force: Iterable[Acl], size: int) -> None:
        if not added and not removed and not self._file.may_differ:
            return
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._executor, self._file.save, added, removed, in_force, size)
        except OSError as error:
            raise StorageError(f"{FILE}: {error.strerror or error}") from error
        self._bytes = size


def _check_number(changes: Sequence[Acl]) -> None:
    if len(changes) > MOST_CHANGES:
        problem = f"{len(changes)} ACLs would change; a request may change {MOST_CHANGES}"
        raise KafkaError(Error.POLICY_VIOLATION, problem)

"""SCRAM users: who has which credentials; set and delete them. Source: KIP-554.

A password never leaves the client: what is sent is salted, and brokers keep what they can check it by.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, as_refusal, partly_refused
from tagwire.client.property_values import wrong
from tagwire.errors import UNREACHABLE, ConfigError, KafkaError, PartlyRefusedError
from tagwire.escaping import told
from tagwire.rpc.sasl import credential_fault
from tagwire.rpc.scram import MAX_SET_ITERATIONS, MIN_ITERATIONS, SCRAM_NUMBERS, salted_password

_SALT_BYTES: Final = 24


@dataclass(frozen=True, order=True, slots=True)
class ScramCredentialInfo:
    """A credential, as far as brokers tell of it.

    Attributes:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
    """

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A password that a user is to have with a mechanism, in the place of any before it. No `repr` shows it.

    Attributes:
        mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
        iterations: 4096 to 16384; more make a password dearer to guess, and a login slower.
        salt: None takes a random one.
    """

    user: str
    mechanism: str
    password: str = field(repr=False)
    iterations: int = MIN_ITERATIONS
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    """A mechanism that a user is to have no password with any more: SCRAM-SHA-256 or SCRAM-SHA-512."""

    user: str
    mechanism: str


UserScramCredentialAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion

_Upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
_Deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion


class ScramUsers(AdminApi):
    """SCRAM users of a cluster."""

    async def describe_user_scram_credentials(
        self, users: arguments.Names | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """As `Admin.describe_user_scram_credentials`."""
        kind = messages.DescribeUserScramCredentialsRequest
        wanted = None if users is None else arguments.names("users", users)
        everybody: dict[str, list[ScramCredentialInfo]] = {}
        if wanted is not None and not wanted:
            return {}  # on the wire nobody means everybody

        async def named(left: list[str], deadline: float) -> ApiResults[str, list[ScramCredentialInfo]]:
            request = kind(users=[kind.UserName(name=name) for name in left])
            response = await self._request(None, request, deadline)
            if response.error_code:
                for name in left:
                    yield ApiResult(name, response.error_code, response.error_message)
                return
            for result in response.results:
                yield ApiResult(result.user, result.error_code, result.error_message, _infos(result))

        async def all_there_are(left: list[str], deadline: float) -> ApiResults[str, None]:
            response = await self._request(None, kind(users=None), deadline)
            everybody.clear()
            code, message = response.error_code, response.error_message
            for result in response.results:
                everybody[result.user] = _infos(result)
                if result.error_code and not code:
                    said = f": {told(result.error_message)}" if result.error_message else ""
                    code, message = result.error_code, f"user {result.user!r}{said}"
            yield ApiResult("SCRAM users", code, message)

        if wanted is None:
            await self._drive(["SCRAM users"], all_there_are, "describe")
            return {name: everybody[name] for name in sorted(everybody)}
        return await self._drive(wanted, named, "describe SCRAM user")

    async def alter_user_scram_credentials(
        self, alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration]
    ) -> None:
        """As `Admin.alter_user_scram_credentials`."""
        shape = 'UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", password), ...Deletion, or a list of them'
        kinds = (UserScramCredentialUpsertion, UserScramCredentialDeletion)
        given: list[UserScramCredentialAlteration] = arguments.several("alterations", alterations, kinds, shape)
        for each in given:
            _check(each)
        for (user, mechanism), times in Counter((each.user, each.mechanism) for each in given).items():
            if times > 1:
                raise ConfigError(f"alterations: {mechanism} of user {told(user)!r} is named {times} times")
        # Kafka refuses a request that names a user twice, whichever mechanisms it is about.
        rounds: list[dict[str, _Upsertion | _Deletion]] = []
        for each in given:
            free = next((one for one in rounds if each.user not in one), None)
            if free is None:
                rounds.append(free := {})
            free[each.user] = _altered(each)
        refused: dict[tuple[str, str], KafkaError] = {}
        done: dict[tuple[str, str], None] = {}
        for one in rounds:
            named = _named(one)
            try:
                await self._alter(one)
            except PartlyRefusedError as error:
                refused |= {named[user]: each for user, each in error.refused.items()}
                done |= dict.fromkeys(named[user] for user in error.succeeded)
            except KafkaError as error:
                refused |= dict.fromkeys(named.values(), error)
            except UNREACHABLE as error:
                if not done and not refused:
                    raise
                # Those before it are done, or refused: that is told, and what comes after it as not done.
                names = [name for each in rounds for name in _named(each).values()]
                missing = [name for name in names if name not in done and name not in refused]
                refused |= {name: as_refusal(error, f"alter SCRAM user {name[0]!r}") for name in missing}
                break
            else:
                done |= dict.fromkeys(named.values())
        if len(given) == 1 and refused:
            raise next(iter(refused.values()))
        if refused:
            raise partly_refused(refused, done)

    async def _alter(self, wanted: dict[str, _Upsertion | _Deletion]) -> None:
        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            altered = [wanted[user] for user in left]
            request = messages.AlterUserScramCredentialsRequest(
                deletions=[each for each in altered if isinstance(each, _Deletion)],
                upsertions=[each for each in altered if isinstance(each, _Upsertion)],
            )
            controller = await self._network.controller(deadline)
            response = await self._network.request(controller, request, deadline)
            for result in response.results:
                yield ApiResult(result.user, result.error_code, result.error_message)

        await self._drive(list(wanted), send, "alter SCRAM user", changes=True)


_NAMES: Final = {number: name for name, number in SCRAM_NUMBERS.items()}


def _named(one: dict[str, _Upsertion | _Deletion]) -> dict[str, tuple[str, str]]:
    """{user: what is altered of it, as callers are told}, of a request."""
    return {user: (user, _NAMES[each.mechanism]) for user, each in one.items()}


def _altered(given: UserScramCredentialAlteration) -> _Upsertion | _Deletion:
    """What is sent of it."""
    number = SCRAM_NUMBERS[given.mechanism]
    if isinstance(given, UserScramCredentialDeletion):
        return _Deletion(name=given.user, mechanism=number)
    salt = secrets.token_bytes(_SALT_BYTES) if given.salt is None else given.salt
    salted = salted_password(given.mechanism, given.password, salt, given.iterations)
    return _Upsertion(name=given.user, mechanism=number, iterations=given.iterations, salt=salt, salted_password=salted)


def _infos(
    result: messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult,
) -> list[ScramCredentialInfo]:
    return sorted(
        ScramCredentialInfo(_NAMES.get(each.mechanism, str(each.mechanism)), each.iterations)
        for each in result.credential_infos
    )


def _check(given: UserScramCredentialAlteration) -> None:
    """Raises ConfigError for what no broker could take; the text holds no password."""
    if not arguments.name("user", given.user):
        raise ConfigError("user: it needs a name")
    if given.mechanism not in SCRAM_NUMBERS:
        raise wrong("mechanism", arguments.shown(given.mechanism), " or ".join(SCRAM_NUMBERS))
    if isinstance(given, UserScramCredentialDeletion):
        return
    where = f"of user {told(given.user)!r}"
    if not isinstance(given.password, str) or not given.password:
        raise ConfigError(f"password {where}: needs text that is not empty")
    if (problem := credential_fault(given.password)) is not None:
        raise ConfigError(f"password {where}: {problem}")
    iterations = arguments.whole(given.iterations)
    if iterations is None or not MIN_ITERATIONS <= iterations <= MAX_SET_ITERATIONS:
        raise wrong(
            f"iterations {where}", arguments.shown(given.iterations), f"{MIN_ITERATIONS} to {MAX_SET_ITERATIONS}"
        )
    if given.salt is not None and (not isinstance(given.salt, bytes) or not given.salt):
        raise ConfigError(f"salt {where}: needs bytes, or None for random ones")

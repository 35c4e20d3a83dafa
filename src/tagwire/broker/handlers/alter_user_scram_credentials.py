"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials, each user with its own outcome.

Version 0. What is set is stored and counts for whoever authenticates from then on, on every node. A user may be named
once in a request, whatever the mechanism, as in Kafka. Source: KIP-554; Kafka's ScramControlManager.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.scram_users import SCRAM_NAMES, Key
from tagwire.errors import Error, KafkaError
from tagwire.rpc import ScramCredential, salted_credential
from tagwire.rpc.scram import MAX_SET_ITERATIONS, MIN_ITERATIONS

Request = messages.AlterUserScramCredentialsRequest
Response = messages.AlterUserScramCredentialsResponse

Alteration = Request.ScramCredentialDeletion | Request.ScramCredentialUpsertion

MOST_SALT_BYTES = 1024


@handles(Request, versions="0-0")
async def alter_user_scram_credentials(call: Call[Request]) -> Response:
    requested: list[Alteration] = [*call.request.deletions, *call.request.upsertions]
    changes: dict[str, tuple[Key, ScramCredential | None]] = {}
    refused: dict[str, KafkaError] = {}
    for wanted in requested:
        if wanted.name in refused:
            continue
        try:
            if changes.pop(wanted.name, None) is not None:
                raise KafkaError(Error.DUPLICATE_RESOURCE, "a user can be altered once in a request")
            changes[wanted.name] = (wanted.name, wanted.mechanism), _credential(call, wanted)
        except KafkaError as error:
            refused[wanted.name] = error
    if changes:
        try:
            missing = await call.broker.scram_users.change(dict(changes.values()))
            refused.update((name, _not_found()) for name, _ in missing)
        except KafkaError as error:
            refused.update(dict.fromkeys(changes, error))
    return Response(results=[_result(name, refused.get(name)) for name in dict.fromkeys(one.name for one in requested)])


def _credential(call: Call[Request], wanted: Alteration) -> ScramCredential | None:
    """The credential that is wanted, None for a deletion. KafkaError where it cannot be had."""
    if not wanted.name:
        raise KafkaError(Error.UNACCEPTABLE_CREDENTIAL, "a user needs a name")
    if wanted.mechanism not in SCRAM_NAMES:
        raise KafkaError(Error.UNSUPPORTED_SASL_MECHANISM, f"mechanism {wanted.mechanism} is not 1 or 2")
    if isinstance(wanted, Request.ScramCredentialDeletion):
        if not call.broker.scram_users.has((wanted.name, wanted.mechanism)):
            raise _not_found()
        return None
    if not MIN_ITERATIONS <= wanted.iterations <= MAX_SET_ITERATIONS:
        problem = f"{wanted.iterations} iterations are not {MIN_ITERATIONS} to {MAX_SET_ITERATIONS}"
        raise KafkaError(Error.UNACCEPTABLE_CREDENTIAL, problem)
    if not wanted.salted_password or len(wanted.salt) > MOST_SALT_BYTES:
        problem = f"the salted password is empty, or the salt has more than {MOST_SALT_BYTES} bytes"
        raise KafkaError(Error.UNACCEPTABLE_CREDENTIAL, problem)
    return salted_credential(
        SCRAM_NAMES[wanted.mechanism],
        bytes(wanted.salted_password),
        salt=bytes(wanted.salt),
        iterations=wanted.iterations,
    )


def _not_found() -> KafkaError:
    return KafkaError(Error.RESOURCE_NOT_FOUND, "the user has no such credential")


def _result(name: str, error: KafkaError | None) -> Response.AlterUserScramCredentialsResult:
    if error is None:
        return Response.AlterUserScramCredentialsResult(user=name, error_message=None)
    return Response.AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.message)

"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials, each user with its own outcome.

Version 0. Users are said when the broker is started: what would change one is refused (POLICY_VIOLATION), what could
not be done anyway is refused as Kafka does. Source: KIP-554.
"""

from __future__ import annotations

from collections import Counter

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.broker.scram_users import SCRAM_NUMBERS, scram_mechanisms
from tagwire.errors import Error, KafkaError
from tagwire.rpc.scram import MIN_ITERATIONS

Request = messages.AlterUserScramCredentialsRequest
Response = messages.AlterUserScramCredentialsResponse

Credential = Request.ScramCredentialDeletion | Request.ScramCredentialUpsertion

MOST_ITERATIONS = 16384
"""Kafka's."""


@handles(Request, versions="0-0")
async def alter_user_scram_credentials(call: Call[Request]) -> Response:
    request = call.request
    requested: list[Credential] = [*request.deletions, *request.upsertions]
    times = Counter((one.name, one.mechanism) for one in requested)
    results = {}
    for wanted in requested:
        result = results[wanted.name] = Response.AlterUserScramCredentialsResult(user=wanted.name)
        try:
            if times[wanted.name, wanted.mechanism] > 1:
                raise KafkaError(Error.DUPLICATE_RESOURCE, f"a credential of user {wanted.name} is named twice")
            _refuse(call, wanted)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return Response(results=list(results.values()))


def _refuse(call: Call[Request], wanted: Credential) -> None:
    settings = call.broker.settings
    if not wanted.name:
        raise KafkaError(Error.UNACCEPTABLE_CREDENTIAL, "a user needs a name")
    if wanted.mechanism not in SCRAM_NUMBERS.values():
        raise KafkaError(Error.UNSUPPORTED_SASL_MECHANISM, f"mechanism {wanted.mechanism} is not 1 or 2")
    if isinstance(wanted, Request.ScramCredentialUpsertion):
        if not MIN_ITERATIONS <= wanted.iterations <= MOST_ITERATIONS:
            problem = f"{wanted.iterations} iterations are not {MIN_ITERATIONS} to {MOST_ITERATIONS}"
            raise KafkaError(Error.UNACCEPTABLE_CREDENTIAL, problem)
    elif wanted.name not in settings.users or wanted.mechanism not in scram_mechanisms(settings):
        raise KafkaError(Error.RESOURCE_NOT_FOUND, f"user {wanted.name} has no such credential")
    raise KafkaError(Error.POLICY_VIOLATION, "users are said when the broker is started, and cannot be changed")

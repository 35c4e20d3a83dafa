"""DescribeUserScramCredentials (key 50): describe the SCRAM credentials of users.

Version 0. A user that the settings name has a credential of every SCRAM mechanism that a listener asks for, until a
client has changed it. Salts and keys are never told. Source: KIP-554.
"""

from __future__ import annotations

from collections import Counter

from tagwire import messages
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error

Request = messages.DescribeUserScramCredentialsRequest
Response = messages.DescribeUserScramCredentialsResponse


@handles(Request, versions="0-0")
async def describe_user_scram_credentials(call: Call[Request]) -> Response:
    users = call.broker.scram_users.iterations()
    requested = Counter(user.name for user in call.request.users or ()) or Counter(users.keys())
    results = []
    for name, times in requested.items():
        result = Response.DescribeUserScramCredentialsResult(user=name, error_message=None)
        if times > 1:
            result.error_code, result.error_message = Error.DUPLICATE_RESOURCE, f"user {name} is named {times} times"
        elif name not in users:
            result.error_code, result.error_message = Error.RESOURCE_NOT_FOUND, f"user {name} has no SCRAM credential"
        else:
            result.credential_infos = [
                Response.CredentialInfo(mechanism=mechanism, iterations=iterations)
                for mechanism, iterations in users[name].items()
            ]
        results.append(result)
    return Response(error_message=None, results=results)

"""CreateAcls (key 30): create ACLs, each with its own outcome.

Versions 1-3. Those that can be are created together, and are on the disk before the response; one that is there
already is created. Without an authorizer all are refused, as in `describe_acls`. Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.authorization.acls import Acl, acl_of
from tagwire.broker.handlers.describe_acls import NO_AUTHORIZER
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.CreateAclsRequest
Response = messages.CreateAclsResponse


@handles(Request, versions="1-3")
async def create_acls(call: Call[Request]) -> Response:
    authorizer = call.broker.authorizer
    if authorizer is None:
        refused = Response.AclCreationResult(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return Response(results=[refused] * len(call.request.creations))
    outcomes = [_acl(written, authorizer.with_networks) for written in call.request.creations]
    refusal: KafkaError | None = None
    try:
        await authorizer.create([acl for acl in outcomes if isinstance(acl, Acl)])
    except KafkaError as error:
        refusal = error
    except StorageError as error:
        refusal = KafkaError(Error.KAFKA_STORAGE_ERROR, str(error))
    return Response(results=[_result(refusal if isinstance(outcome, Acl) else outcome) for outcome in outcomes])


def _acl(written: Request.AclCreation, with_networks: bool) -> Acl | KafkaError:
    try:
        return acl_of(written, with_networks=with_networks)
    except KafkaError as error:
        return error


def _result(refusal: KafkaError | None) -> Response.AclCreationResult:
    if refusal is None:
        return Response.AclCreationResult(error_message=None)
    return Response.AclCreationResult(error_code=refusal.code, error_message=refusal.message)

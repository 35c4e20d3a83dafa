"""DeleteAcls (key 31): delete ACLs, each filter with its own outcome, which lists what it meant.

Versions 1-3. What the filters mean is deleted together, and gone from the disk before the response. Without an
authorizer all are refused, as in `describe_acls`. Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from collections.abc import Sequence

from tagwire import messages
from tagwire.broker.authorization.acls import Acl, AclFilter, filter_of
from tagwire.broker.handlers.describe_acls import NO_AUTHORIZER
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.DeleteAclsRequest
Response = messages.DeleteAclsResponse


@handles(Request, versions="1-3")
async def delete_acls(call: Call[Request]) -> Response:
    authorizer = call.broker.authorizer
    if authorizer is None:
        refused = _refused(KafkaError(Error.SECURITY_DISABLED, NO_AUTHORIZER))
        return Response(filter_results=[refused] * len(call.request.filters))
    outcomes = [_filter(written) for written in call.request.filters]
    filters = [meant for meant in outcomes if isinstance(meant, AclFilter)]
    try:
        deleted = iter(await authorizer.delete(filters))
    except (KafkaError, StorageError) as error:
        why = error if isinstance(error, KafkaError) else KafkaError(Error.KAFKA_STORAGE_ERROR, str(error))
        return Response(filter_results=[_refused(each if isinstance(each, KafkaError) else why) for each in outcomes])
    return Response(
        filter_results=[
            _refused(each) if isinstance(each, KafkaError) else _deleted(next(deleted)) for each in outcomes
        ]
    )


def _filter(written: Request.DeleteAclsFilter) -> AclFilter | KafkaError:
    try:
        return filter_of(written)
    except KafkaError as error:
        return error


def _refused(refusal: KafkaError) -> Response.DeleteAclsFilterResult:
    return Response.DeleteAclsFilterResult(error_code=refusal.code, error_message=refusal.message)


def _deleted(acls: Sequence[Acl]) -> Response.DeleteAclsFilterResult:
    return Response.DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            Response.DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.kind,
                resource_name=acl.name,
                pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ],
    )

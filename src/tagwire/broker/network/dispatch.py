"""From a request to its response: authentication, interceptions, what the client may do, the API's handler."""

from __future__ import annotations

from functools import partial

from tagwire.broker.apis import Apis
from tagwire.broker.authorization.access import Access
from tagwire.broker.authorization.told_operations import TOLD, telling_everything
from tagwire.broker.handlers.api_versions import unsupported_version
from tagwire.broker.interception import Intercepted
from tagwire.broker.node import Node
from tagwire.broker.registry import Call
from tagwire.broker.session import AnyResponse, HangUp, Session
from tagwire.rpc import AnyRequest, Request, UnsupportedApiVersions


async def respond(request: AnyRequest, session: Session, broker: Node, apis: Apis) -> AnyResponse:
    """The response object; None for no response, or, to a request that is not served, one of nothing but
    its correlation id.

    Raises:
        HangUp: the connection is to be closed instead.
        DecodeError: the request's body cannot be read.
    """
    if session.gate is not None and not session.gate.admits(request.api_key):
        raise HangUp("its session has ended" if session.is_known else "it has not authenticated")
    if isinstance(request, UnsupportedApiVersions) and request.api_key in apis.versions:
        return unsupported_version(session.advertised)
    if not isinstance(request, Request):
        if broker.settings.unsupported == "empty":
            return None
        raise HangUp("it is not served")
    served = apis.serving(request.api_key)
    if served.most_bytes is not None and len(request.body) > served.most_bytes:
        raise HangUp(f"its {len(request.body)} bytes are over {served.most_bytes}")
    call = Call(request.decode(), request.version, request.client_id, session, broker, request.header)
    handler = served.handler
    if served.coordinated is not None and not broker.image.is_alone:
        handler = partial(served.coordinated.respond, handle=handler)
    if request.api_key in apis.added:
        pass  # its handler asks for itself
    elif broker.authorizer is not None:
        # A broker that lets everybody do everything has no use for them.
        from tagwire.broker.authorization.rules import RULES

        rule = RULES[request.api_key]
        handler = partial(rule.respond, access=Access(broker.authorizer, session), handle=handler)
    elif request.api_key in TOLD:
        handler = partial(telling_everything, handle=handler)
    if broker.throttles.is_on:
        handler = partial(broker.throttles.respond, key=request.api_key, size=len(request.body), handle=handler)
    interception = broker.hooks.interceptions.of(request.api_key)
    if interception is None:
        return await handler(call)
    taken = Intercepted(request.api_key, call.version, call.client_id, call.request, lambda: handler(call))
    return await interception.take(taken)

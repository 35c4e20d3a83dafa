"""Who asks in these tests: wires that have logged in, and ACLs asked for over them."""

from __future__ import annotations

from tagwire import messages

SUPER = "admin"
USERS = {name: f"{name}-secret" for name in (SUPER, "alice", "bob")}

OPTIONS = {
    "sasl": "PLAIN",
    "users": USERS,
    "authorizer": "StandardAuthorizer",
    "super_users": f"User:{SUPER};User:nobody",
}

ANY, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 1, 2, 3, 4, 5
MATCH, LITERAL, PREFIXED = 2, 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
DENY, ALLOW = 2, 3


def login(wire, name):
    """The wire, of somebody."""
    assert wire.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{name}\0{USERS[name]}".encode()
    assert wire.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0
    return wire


def creation(name, operation=READ, permission=ALLOW, *, kind=TOPIC, pattern=LITERAL, principal="User:alice", host="*"):
    return messages.CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create(wire, *creations, version=3):
    return wire.ask(messages.CreateAclsRequest(creations=list(creations)), version).results


def grant(wire, *creations):
    assert {result.error_code for result in create(wire, *creations)} == {0}


def meant(kind=ANY, name=None, pattern=ANY, principal=None, host=None, operation=ANY, permission=ANY):
    """The fields of a filter."""
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def describe(wire, version=3, **fields):
    return wire.ask(messages.DescribeAclsRequest(**meant(**fields)), version)


def delete(wire, *filters, version=3):
    request = messages.DeleteAclsRequest
    return wire.ask(request(filters=[request.DeleteAclsFilter(**each) for each in filters]), version).filter_results

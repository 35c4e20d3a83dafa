"""The way to the brokers, step by step: name, connection, TLS, SASL, ApiVersions, what they advertise, and their clock.

Nothing is written, and every request is one that any client sends. No step takes longer than the time it is
given, and no secret is in what is found: errors of the client hold none.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client import Client, ClusterMetadata
from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ALIASES, addresses_of, parse
from tagwire.client.connection_settings import ConnectionSettings, ConnectionState
from tagwire.client.metadata import Node
from tagwire.client.security import Security, security_of
from tagwire.client.tls import Tls
from tagwire.client.versions import DISPENSABLE, OURS, policy
from tagwire.doctor.findings import OK, PROBLEM, WARNING, Finding, in_background
from tagwire.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    TagwireError,
)
from tagwire.rpc import api_name, negotiate, resembling
from tagwire.rpc.addresses import address_text

MOST_ADDRESSES: Final = 32
"""Bootstrap addresses, and brokers of a cluster, that are tried: more tell no more."""

MOST_PARTITIONS: Final = 200
"""Partitions whose newest record's time is looked up."""

SKEW: Final = 5.0
"""Seconds that a record may be ahead of this machine's clock."""

_MAX_TIMESTAMP: Final = -3  # ListOffsets 7 and later, KIP-734
_CERTIFICATE_DAYS: Final = 14
_SLOW: Final = 1.0

# What a step says of itself, and what to do then.
_CONNECTING: Final = {
    "Name or service not known": "check how the host is spelt, /etc/hosts, the name server, the VPN",
    "No address associated": "the name is known, and has no address: check its A and AAAA records, and the VPN",
    "nodename nor servname": "check how the host is spelt, /etc/hosts, the name server, the VPN",
    "Temporary failure in name resolution": "the name server does not answer: check it, and the VPN",
    "Connection refused": "nothing listens at that port: does the broker run, and is this the port of its listener?",
    "timed out": "packets are dropped: a firewall, a security group, or an address of another network",
    "No route to host": "this machine has no way there: check the network, the VPN, a container's network",
    "Network is unreachable": "this machine has no way there: check the network, the VPN, a container's network",
}
_PLAINTEXT: Final = "the listener is plaintext: take its TLS port, or security.protocol=PLAINTEXT or SASL_PLAINTEXT"
_TLS: Final = {
    "does not seem to speak TLS": _PLAINTEXT,
    "IP address mismatch": "connect by a name that the certificate has, or have one issued for this address",
    "mismatch": "connect by a name that the certificate has, or have one issued for this name",
    "not yet valid": "compare this machine's clock with the world's: the certificate begins in its future",
    "expired": "have the broker's certificate renewed; if it was, compare this machine's clock with the world's",
    "self signed": "name the authority that issued it: ssl.ca.location=ca.pem",  # of OpenSSL 1
    "self-signed": "name the authority that issued it: ssl.ca.location=ca.pem",
    "unable to get": "name the authority that issued it: ssl.ca.location=ca.pem",
    "may not speak TLS": _PLAINTEXT,
    "no answer": "the port takes connections and says nothing in TLS: it may be a plaintext listener",
}
_SASL: Final = {
    "ILLEGAL_SASL_STATE": "the listener asks for no user: security.protocol=PLAINTEXT or SSL",
    "UNSUPPORTED_SASL_MECHANISM": "set sasl.mechanism to one that the broker offers",
    "SASL_AUTHENTICATION_FAILED": "check user and password, and that the user was made for this mechanism",
    "prove": "the broker does not know the password that this client has: check it, and that it is the right broker",
}
_PLAIN: Final = "the listener speaks TLS: security.protocol=SSL or SASL_SSL, and ssl.ca.location=ca.pem"


def look(properties: Mapping[str, str] | None, timeout: float) -> Iterator[Finding]:
    """What there is to say of the brokers that `properties` name, None where nobody named any.

    Args:
        timeout: seconds that one request may take.
    """
    if properties is None:
        yield Finding("brokers", OK, "not looked at; name them: tagwire doctor HOST:PORT")
        return
    try:
        settings = parse(properties)
        security = security_of(settings.security)
    except ConfigError as error:
        yield Finding("brokers", PROBLEM, str(error), "mend this property")
        return
    connections = ConnectionSettings(settings.client_id, policy({}, None, None, {}), security)
    addresses = addresses_of(settings.bootstrap)[:MOST_ADDRESSES]
    steps = [in_background(lambda at=at: list(_address(at, connections, timeout))) for at in addresses]  # type: ignore[misc]
    until = time.monotonic() + 4 * timeout
    answering = []
    for at, step in zip(addresses, steps):
        found = _within(step, until, "broker", address_text(at))
        yield from found
        if any(finding.check == "broker" and finding.state != PROBLEM for finding in found):
            answering.append(at)
    if not answering:
        return
    reached = {"bootstrap.servers": ",".join(map(address_text, answering))}
    given = {ALIASES.get(name, name): value for name, value in properties.items()}
    with Client.from_properties({**given, **reached, "request.timeout.ms": f"{timeout * 1000:.0f}"}) as client:
        try:
            cluster = client.metadata()
        except TagwireError as error:
            yield _refused(error, answering, connections, timeout)
            return
        yield from _advertised(cluster, connections, timeout)
        yield from _clock(client, cluster)


@contextmanager
def _tried(
    at: tuple[str, int], settings: ConnectionSettings, timeout: float, name: str | None = None
) -> Iterator[tuple[BlockingDriver, BrokerConnection]]:
    """A connection that is ready, or has failed: `error` and `failed_at` tell."""
    driver = BlockingDriver()
    deadline = driver.now() + timeout
    connection = BrokerConnection(
        *at, broker=name or address_text(at), settings=settings, now=driver.now, deadline=deadline
    )
    try:
        driver.register(connection)
        with suppress(TagwireError):
            driver.run(connection.opened(deadline))
        yield driver, connection
    finally:
        driver.close()


def _address(at: tuple[str, int], settings: ConnectionSettings, timeout: float) -> Iterator[Finding]:
    name, security = address_text(at), settings.security
    started = time.monotonic()
    with _tried(at, settings, timeout) as (_, connection):
        took, error = time.monotonic() - started, connection.error
        failed_at, ranges, tls = connection.failed_at, connection.ranges, connection.tls
        if failed_at in (ConnectionState.RESOLVING, ConnectionState.CONNECTING):
            yield Finding("broker", PROBLEM, f"{error}", _advice(str(error), _CONNECTING))
            return
        if security.uses_tls:
            if failed_at is ConnectionState.TLS or tls is None:
                yield Finding("tls", PROBLEM, str(error), _advice(str(error), _TLS))
                return
            yield _certificate(name, tls)
    if error is not None:
        yield Finding("broker", PROBLEM, str(error), _why_not(error, at, security, timeout))
        return
    releases = " or ".join(resembling(ranges))
    said = f"{name} answered in {took * 1000:.0f} ms" + (f"; Kafka {releases} by its versions" if releases else "")
    said += f"; {security.security_protocol}" + (f" {security.mechanism_name}" if security.uses_sasl else "")
    lacks = [api_name(api) for api in sorted(set(OURS) - set(negotiate(OURS, ranges)) - set(DISPENSABLE))]
    if took > _SLOW:
        yield Finding(
            "broker", WARNING, said, "every request waits like this: look at the network and the broker's load"
        )
    elif lacks:
        many = f"{said}; no version in common for {', '.join(lacks[:8])}{' and more' if len(lacks) > 8 else ''}"
        yield Finding("broker", WARNING, many, f"tagwire versions {name} tells all; what needs these will be refused")
    else:
        yield Finding("broker", OK, said)


def _certificate(name: str, tls: Tls) -> Finding:
    """How long the broker's certificate is good for."""
    said = f"{name} speaks {tls.version}"
    if tls.certificate_ends is None:  # a context of the caller's that checks no certificate
        return Finding("tls", OK, said)
    days = (ssl.cert_time_to_seconds(tls.certificate_ends) - time.time()) / 86400
    said += f"; its certificate ends in {days:.0f} days"
    if days < _CERTIFICATE_DAYS:
        return Finding("tls", WARNING, said, "have the broker's certificate renewed")
    return Finding("tls", OK, said)


def _why_not(error: TagwireError, at: tuple[str, int], security: Security, timeout: float) -> str:
    """What to do about a broker that was reached and did not respond as it should."""
    if isinstance(error, AuthenticationError):
        return _advice(str(error), _SASL)
    if not security.uses_tls and _speaks_tls(at, timeout):
        return _PLAIN
    if security.uses_tls and not security.ssl_certfile:
        return "the broker may ask clients for a certificate: ssl.certificate.location, ssl.key.location"
    return "something listens there that is no Kafka broker, or this listener is not for clients: check the port"


def _speaks_tls(at: tuple[str, int], timeout: float) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    settings = ConnectionSettings("", security=Security("SSL", ssl_context=context))
    with _tried(at, settings, timeout) as (_, connection):
        return connection.tls is not None and connection.failed_at is not ConnectionState.TLS


def _refused(
    error: TagwireError, addresses: list[tuple[str, int]], settings: ConnectionSettings, timeout: float
) -> Finding:
    """A broker that told its versions and nothing more."""
    offered = None if settings.security.uses_sasl else _mechanisms(addresses[0], settings, timeout)
    if offered is None:
        return Finding("cluster", PROBLEM, str(error), "look at the broker's log for this client's address")
    protocol = "SASL_SSL" if settings.security.uses_tls else "SASL_PLAINTEXT"
    said = f"{address_text(addresses[0])} answers nobody whom it does not know; it offers {', '.join(offered)}"
    advice = f"security.protocol={protocol}, sasl.mechanism={offered[0]}, sasl.username=..., sasl.password=..."
    return Finding("cluster", PROBLEM, said, advice)


def _mechanisms(at: tuple[str, int], settings: ConnectionSettings, timeout: float) -> list[str] | None:
    """The mechanisms that a listener offers; None where it asks for none. A name that nobody has asks for the list."""
    with _tried(at, settings, timeout) as (driver, connection), suppress(TagwireError):
        request = connection.send(messages.SaslHandshakeRequest(mechanism="ANY"))
        response: messages.SaslHandshakeResponse = driver.run(request.response(driver.now() + timeout))
        if response.error_code == Error.UNSUPPORTED_SASL_MECHANISM and response.mechanisms:
            return [str(mechanism) for mechanism in response.mechanisms]
    return None


def _advertised(cluster: ClusterMetadata, settings: ConnectionSettings, timeout: float) -> Iterator[Finding]:
    """Whether every broker can be reached where clients are told to."""
    nodes = sorted(cluster.brokers.values(), key=lambda node: node.id)
    tried = nodes[:MOST_ADDRESSES]

    def reach(node: Node) -> list[Finding]:
        with _tried((node.host, node.port), settings, timeout, str(node)) as (_, connection):
            if connection.error is not None:
                raise connection.error
        return []

    steps = [
        in_background(lambda node=node: reach(node))  # type: ignore[misc]
        for node in tried
    ]
    until = time.monotonic() + 2 * timeout
    failed = 0
    for node, step in zip(tried, steps):
        for finding in _within(step, until, "advertised", str(node)):
            failed += 1
            advice = (
                "clients are sent there: the broker's advertised.listeners needs an address that this machine reaches"
            )
            if settings.security.uses_tls and "certificate" in finding.said:
                advice = f"clients are sent there by this name: {_advice(finding.said, _TLS)}"
            said = f"broker {node.id} is advertised where it cannot be reached: {finding.said}"
            yield Finding("advertised", PROBLEM, said, advice)
    told = ", ".join(map(str, tried[:3])) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
    if not nodes:
        yield Finding("advertised", PROBLEM, "the cluster lists no broker", "wait until one has joined, or see its log")
    elif not failed:
        yield Finding("advertised", OK, f"reached as advertised: {told}")


def _clock(client: Client, cluster: ClusterMetadata) -> Iterator[Finding]:
    """Whether records are stamped in this machine's future. That it is ahead of others does not show from outside."""
    newest: tuple[float, str] | None = None
    left = MOST_PARTITIONS
    by_leader: dict[int, dict[str, list[int]]] = {}
    for topic in cluster.topics.values():
        for partition in topic.partitions.values():
            if not topic.is_internal and partition.leader in cluster.brokers and left:
                left -= 1
                by_leader.setdefault(partition.leader, {}).setdefault(topic.name, []).append(partition.index)
    for leader, topics in by_leader.items():
        with suppress(TagwireError):  # an older broker has no such request; one that is away was told of above
            for time_ms, where in _newest(client, leader, topics):
                newest = max(newest or (time_ms, where), (time_ms, where))
    if newest is None:
        yield Finding("clock", OK, "not compared: there is no record whose time a broker tells")
        return
    ahead = newest[0] / 1000 - time.time()
    if ahead > SKEW:
        said = f"the newest record of {newest[1]} is stamped {ahead:,.0f} s ahead of this machine's clock"
        advice = (
            "compare both clocks with the world's (timedatectl, chronyc tracking): this one is behind, or that of "
            "whoever stamped the record is ahead"
        )
        yield Finding("clock", WARNING, said, advice)
    else:
        yield Finding("clock", OK, f"no record is stamped ahead of this machine's clock; the newest is of {newest[1]}")


def _newest(client: Client, leader: int, topics: Mapping[str, list[int]]) -> Iterator[tuple[float, str]]:
    kind: Any = messages.ListOffsetsRequest
    request = kind(
        replica_id=-1,
        topics=[
            kind.ListOffsetsTopic(
                name=name,
                partitions=[
                    kind.ListOffsetsPartition(partition_index=index, timestamp=_MAX_TIMESTAMP) for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
    connection = client.network.connection(leader, client.network.deadline())
    if connection.version(kind.api_key) < 7:
        return
    for topic in client.request(request, node=leader).topics:
        for partition in topic.partitions:
            if not partition.error_code and partition.timestamp >= 0:
                yield partition.timestamp, f"{topic.name}-{partition.partition_index}"


def _within(step: Future[list[Finding]], until: float, check: str, name: str) -> list[Finding]:
    """What a step found, a problem where it raised or its time was up."""
    try:
        return step.result(timeout=max(until - time.monotonic(), 0.0))
    except FutureTimeoutError:
        said = f"{name}: no response in time; the name server may not answer"
        return [Finding(check, PROBLEM, said, "check the name server and the network; --timeout waits longer")]
    except TagwireError as error:
        return [Finding(check, PROBLEM, str(error), _advice(str(error), _CONNECTING))]


def _advice(said: str, known: Mapping[str, str]) -> str:
    return next(
        (advice for sign, advice in known.items() if sign in said), "look for this text in docs/troubleshooting.md"
    )

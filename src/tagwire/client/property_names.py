"""The names of properties that other clients of Kafka know, so that a misspelt one is told from one of theirs.

Sources: ConsumerConfig, ProducerConfig, AdminClientConfig, CommonClientConfigs, SaslConfigs, SslConfigs and
SecurityConfig of Kafka 4.3's Java clients; the table of global and topic properties of librdkafka 2.x.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

# How alike two names are that are meant to be the same (difflib's ratio): a letter or two apart.
_ALIKE: Final = 0.85

_JAVA: Final = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset batch.size
    bootstrap.controllers bootstrap.servers buffer.memory check.crcs client.dns.lookup client.id client.rack
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level config.providers
    connections.max.idle.ms default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence
    enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
    key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retries retry.backoff.max.ms retry.backoff.ms security.protocol security.providers send.buffer.bytes
    session.timeout.ms share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.deserializer value.serializer sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url ssl.cipher.suites ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""

_LIBRDKAFKA: Final = """
    allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
    auto.commit.enable auto.commit.interval.ms auto.offset.reset background_event_cb batch.num.messages batch.size
    broker.address.family broker.address.ttl broker.version.fallback builtin.features check.crcs client.dns.lookup
    client.id client.rack closesocket_cb compression.codec compression.level compression.type connect_cb
    connections.max.idle.ms consume.callback.max.messages consume_cb coordinator.query.interval.ms debug
    default_topic_conf delivery.report.only.error delivery.timeout.ms dr_cb dr_msg_cb enable.auto.commit
    enable.auto.offset.store enable.gapless.guarantee enable.idempotence enable.metrics.push enable.partition.eof
    enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification enabled_events
    error_cb fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type group.remote.assignor
    heartbeat.interval.ms https.ca.location https.ca.pem interceptors internal.termination.signal isolation.level
    linger.ms log.connection.close log.queue log.thread.name log_cb log_level max.in.flight
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms message.copy.max.bytes
    message.max.bytes message.send.max.retries message.timeout.ms metadata.broker.list metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy msg_order_cmp oauthbearer_token_refresh_cb
    offset.store.method offset_commit_cb opaque open_cb partition.assignment.strategy partitioner partitioner_cb
    plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
    queuing.strategy rebalance_cb receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms
    reconnect.backoff.ms request.required.acks request.timeout.ms resolve_cb retries retry.backoff.max.ms
    retry.backoff.ms security.protocol session.timeout.ms socket.blocking.max.ms socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms socket_cb statistics.interval.ms stats_cb
    sticky.partitioning.linger.ms throttle_cb topic.blacklist topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse transaction.timeout.ms transactional.id sasl.kerberos.keytab
    sasl.kerberos.principal sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.password sasl.username ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.crl.location ssl.curves.list ssl.engine.id ssl.engine.location
    ssl.key.location ssl.key.pem ssl.providers ssl.sigalgs.list ssl_engine_callback_data
    acks bootstrap.servers max.poll.records sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url share.acknowledgement.mode ssl.cipher.suites
    ssl.endpoint.identification.algorithm ssl.key.password ssl.keystore.location ssl.keystore.password
    offset.store.path offset.store.sync.interval.ms sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.metadata.authentication.type ssl.certificate.verify_cb
    ssl_ca ssl_certificate ssl_key
"""

KNOWN: Final = frozenset({*_JAVA.split(), *_LIBRDKAFKA.split()})

METRICS_CONTEXT: Final = "metrics.context."
"""What begins the names that users make up for what reporters of metrics are told. Source: CommonClientConfigs."""

# Of librdkafka, and set by calls of C alone: nobody who writes ssl.key means one of these.
_BY_CALLS: Final = frozenset({"ssl_ca", "ssl_certificate", "ssl_key"})


def meant_by(name: str) -> str | None:
    """The name that a property's, which nobody knows, is likely to be a misspelling of; None where it is none."""
    typed = name.lower()
    sensible = KNOWN - _BY_CALLS
    near = get_close_matches(typed, sorted(sensible), 1, _ALIKE) or [
        each for each in sensible if _one_slip(typed, each)
    ]
    return min(near, default=None)


def _one_slip(typed: str, known: str) -> bool:
    """Whether a letter is missing, too many or another one, or two stand the wrong way round: of short names that is
    too much for a ratio."""
    at = next((at for at, (one, other) in enumerate(zip(typed, known)) if one != other), min(len(typed), len(known)))
    typed, known = typed[at:], known[at:]
    swapped = known[1::-1] + known[2:]
    return typed in (known[1:], swapped) or typed[1:] in (known, known[1:])

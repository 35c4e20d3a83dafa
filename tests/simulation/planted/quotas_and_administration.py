"""Defects of quotas, of the connections that they slow down, and of what administrators are told."""

from __future__ import annotations

from .defect import Defect, Edit

_THROTTLES = "tagwire.broker.quotas.throttles"
_CONNECTION = "tagwire.broker.network.connection:ClientConnection"
_DOCUMENT = "tagwire.broker.stored_document:StoredDocument"

QUOTAS_AND_ADMINISTRATION = (
    Defect(
        "adopted-and-not-stored",
        (
            Edit(
                f"{_DOCUMENT}._change",
                "await asyncio.get_running_loop().run_in_executor(self._executor, self._save, content)",
                "await asyncio.sleep(0)",
            ),
        ),
        "quotas and SCRAM users are answered, and never on the disk",
        ("quota-lost", "not-refused", "leaked-memory"),
        60,
        "",
    ),
    Defect(
        "quotas-end-with-their-broker",
        (Edit("tagwire.broker.quotas.stored:ClientQuotas.load", "self._stored.load()", "return"),),
        "a broker that starts has no quotas",
        ("quota-lost", "leaked-memory"),
        60,
        "",
    ),
    Defect(
        "refused-and-adopted",
        (
            Edit(
                f"{_DOCUMENT}._change",
                "                raise KafkaError(Error.KAFKA_STORAGE_ERROR",
                "                self.content = content\n                raise KafkaError(Error.KAFKA_STORAGE_ERROR",
            ),
        ),
        "a quota that the disk has refused counts all the same until a restart",
        ("quota-lost", "not-refused"),
        60,
        "",
    ),
    Defect(
        "counted-and-never-throttled",
        (
            Edit(
                f"{_THROTTLES}:Throttles.respond",
                "wait_ms = max(wait_ms, self._produced.record(call, size))",
                "self._produced.record(call, size)",
            ),
        ),
        "producers are measured, and never throttled",
        ("quota-exceeded", "not-refused"),
        60,
        "",
    ),
    Defect(
        "told-and-not-muted",
        (
            Edit(
                f"{_THROTTLES}:Throttles.respond",
                "call.session.muted_ms = max(call.session.muted_ms, wait_ms)",
                "pass",
            ),
        ),
        "a client that does not heed what it is told is served meanwhile",
        ("quota-exceeded", "not-refused"),
        60,
        "",
    ),
    Defect(
        "muted-for-ever",
        (Edit(f"{_CONNECTION}._mute", "self.session.muted_ms / 1000, 0", "self.session.muted_ms, 0"),),
        "a connection that was muted is not read on for a thousand times as long",
        ("held-by-quota", "not-refused"),
        60,
        "",
    ),
    Defect(
        "not-read-on-when-its-time-is-over",
        (Edit(f"{_CONNECTION}._end_mute", "        self._advance()\n", ""),),
        "requests that came while a connection was muted are not begun when its time is over",
        ("held-by-quota", "quota-exceeded", "not-refused"),
        60,
        "",
    ),
    Defect(
        "all-clients-count-together",
        (Edit(f"{_THROTTLES}:Meters.of", "self.at((user, _short(client_id)))", 'self.at((user, ""))'),),
        "what one client id takes is charged to all that have a quota",
        ("held-by-quota", "not-refused"),
        60,
        "",
    ),
    Defect(
        "default-comes-before-its-own",
        (
            Edit(
                "tagwire.broker.quotas.stored:ClientQuotas.of_client",
                "        for client in (client_id, None) if client_id else ():\n            if",
                "        for client in (None, client_id) if client_id else ():\n            if",
            ),
        ),
        "the default client's quota counts for those that have one of their own",
        ("quota-exceeded", "not-refused"),
        60,
        "",
    ),
    Defect(
        "what-was-not-given-is-counted",
        (
            Edit(
                f"{_THROTTLES}:Throttles.fetched",
                "        if wait_ms > 0:\n            meter",
                "        if not wait_ms:\n            meter",
            ),
        ),
        "readers are charged for what they were not given, and never get on",
        ("held-by-quota", "quota-exceeded"),
        60,
        "",
    ),
    Defect(
        "mutations-are-never-refused",
        (
            Edit(
                f"{_THROTTLES}:Mutations.count",
                "if wait_ms > 0 and self._is_strict:",
                "if wait_ms > 0 and not self._is_strict:",
            ),
        ),
        "who makes topics faster than it may is not refused",
        ("not-refused",),
        60,
        "",
    ),
    Defect(
        "gone-and-still-counted",
        (
            Edit(
                "tagwire.broker.network.socket_server:SocketServer._let_in",
                "  # it came in just before\n        connection.closed.add_done_callback(",
                "\n        (lambda _: None)(",
            ),
        ),
        "connections that are gone count until none is taken any more",
        ("leaked-memory", "not-refused"),
        60,
        "",
    ),
    Defect(
        "throttle-time-is-not-heeded",
        (
            Edit(
                "tagwire.client.broker_connection:BrokerConnection._next_event",
                "pause = pause_after(event.api_key, event.version, event.message)",
                "pause = 0.0",
            ),
        ),
        "the client sends to who has told it to wait, and gives the connection up when no answer comes",
        ("not-refused", "quota-exceeded", "held-by-quota"),
        60,
        "",
    ),
    Defect(
        "success-for-a-quota-that-was-refused",
        (
            Edit(
                "tagwire.client.admin.quotas:Quotas.alter_client_quotas",
                "yield ApiResult(entity, entry.error_code, entry.error_message)",
                "yield ApiResult(entity, 0, entry.error_message)",
            ),
        ),
        "an administrator is told that a quota was altered which a broker has refused",
        ("quota-lost", "not-refused"),
        60,
        "",
    ),
    Defect(
        "validated-is-made",
        (Edit("tagwire.broker.handlers.create_partitions:_result", "if not call.request.validate_only:", "if True:"),),
        "partitions that were only to be checked are made",
        ("not-refused",),
        60,
        "",
    ),
    Defect(
        "election-is-always-needed",
        (
            Edit(
                "tagwire.client.admin.elections:Elections.elect_leaders",
                "None if is_gone else code != Error.ELECTION_NOT_NEEDED",
                "None if is_gone else True",
            ),
        ),
        "who elects a leader is never told that there is no need",
        ("not-refused",),
        60,
        "",
    ),
    Defect(
        "any-state-is-listed",
        (
            Edit(
                "tagwire.broker.handlers.list_transactions:_is_requested",
                "transaction.state.label not in request.state_filters",
                "transaction.state.label in request.state_filters",
            ),
        ),
        "who asks for transactions in a state is told of those in any other",
        ("not-refused",),
        60,
        "",
    ),
)

"""Defects between the broker's handlers and their clients: responses, waiting, sessions, time."""

from __future__ import annotations

from .defect import Defect, Edit

NETWORK = (
    Defect(
        "session-forgets-a-partition",
        (
            Edit(
                "tagwire.broker.fetch_sessions:FetchSessions._update",
                "session.partitions.pop((topic.topic_id if session.by_id else topic.topic, index), None)",
                "[session.partitions.pop(key) for key in [*session.partitions] if key[1] == index]",
            ),
        ),
        "a fetch session that lets go of a partition lets go of those of the same number in other topics, too",
        ("unavailable", "unseen", "poll-skip"),
        200,
        "",
    ),
    Defect(
        "session-tells-no-news",
        (
            Edit(
                "tagwire.broker.fetch_sessions:FetchPartition.tell",
                "is_news = bool(",
                "is_news = not result.error_code and bool(",
            ),
        ),
        "a fetch session does not tell of errors: a reader waits for a partition that another broker leads",
        ("unavailable", "unseen", "poll-skip"),
        200,
        "",
    ),
    Defect(
        "responses-as-they-come",
        (
            Edit(
                "tagwire.broker.network.connection:ClientConnection._send_what_is_ready",
                "            begun = self._begun.popleft()\n",
                "            begun = next(one for one in reversed(self._begun) if one.task.done())\n"
                "            self._begun.remove(begun)\n",
            ),
            Edit(
                "tagwire.rpc.connection:Connection._check_oldest",
                "if not self._unserved or self._unserved[0] is not request:",
                "if not self._unserved:",
            ),
            Edit(
                "tagwire.rpc.connection:Connection.send_response_pieces",
                "encode_response_header(request.api_key, version, request.correlation_id, self._apis)",
                "encode_response_header(request.api_key, version, self._unserved[0].correlation_id, self._apis)",
            ),
        ),
        "of several requests under way the responses are handed to the wrong ones",
        ("inconsistent-offsets", "lost-write", "duplicate"),
        200,
        "",
    ),
    Defect(
        "tasks-left-behind",
        (
            Edit(
                "tagwire.broker.network.connection:ClientConnection._drop_requests",
                "            self._begun.popleft().task.cancel()\n",
                "            self._begun.popleft()\n",
            ),
            Edit(
                "tagwire.broker.handlers.fetch:_results",
                "+ min(call.request.max_wait_ms, MAX_WAIT_MS) / 1000",
                "+ min(call.request.max_wait_ms, MAX_WAIT_MS)",
            ),
        ),
        "a fetch waits a thousand times too long, and when its client is gone it waits on",
        ("leaked-tasks", "unavailable", "unseen"),
        20,
        "",
    ),
    Defect(
        "watchers-left-behind",
        (
            Edit(
                "tagwire.broker.handlers.fetch:_results",
                "    finally:\n        for partition in partitions:\n            partition.unwatch(more)",
                "    except KafkaError:\n        for partition in partitions:\n            partition.unwatch(more)\n"
                "        raise",
            ),
        ),
        "a fetch that is over is told of every later record",
        ("leaked-tasks", "unavailable", "unseen"),
        20,
        "",
    ),
    Defect(
        "turns-left-behind",
        (
            Edit(
                "tagwire.broker.serial_tasks:SerialTasks._leave",
                "            del self._under_way[key], self._locks[key]",
                "            del self._under_way[key]",
            ),
        ),
        "who waits for whom is remembered of every transactional id and group for ever",
        ("leaked-memory",),
        20,
        "",
    ),
    Defect(
        "fetch-sleeps-on",
        (
            Edit(
                "tagwire.broker.handlers.fetch:_is_over",
                "partition.deleted or partition.leadership is not was",
                "partition.deleted and partition.leadership is not was",
            ),
        ),
        "a fetch that waits is not told that the leader has moved, or the topic is gone",
        ("unavailable", "unseen", "poll-skip", "not-refused"),
        1000,
        "",
    ),
    Defect(
        "upkeep-by-the-wall-clock",
        (
            Edit(
                "tagwire.broker.scheduler:every",
                "    while not stopping.is_set():\n"
                "        with suppress(TimeoutError):\n"
                "            await asyncio.wait_for(stopping.wait(), seconds)\n"
                "            return\n",
                "    due = wall_ms() + seconds * 1000\n"
                "    while not stopping.is_set():\n"
                "        with suppress(TimeoutError):\n"
                "            await asyncio.wait_for(stopping.wait(), seconds)\n"
                "            return\n"
                "        if wall_ms() < due:\n"
                "            continue\n"
                "        due = max(due, wall_ms()) + seconds * 1000\n",
            ),
        ),
        "when the clock is set back, nothing is done by the clock for as long: transactions stay open",
        ("stuck-transaction", "stable-stands-still", "not-refused"),
        500,
        "",
    ),
    Defect(
        "led-by-nobody-told",
        (
            Edit(
                "tagwire.broker.handlers.produce:_led_elsewhere",
                "if partition.leadership.leader == node_id:",
                "if partition.leadership.leader >= 0:",
            ),
        ),
        "a broker takes batches for partitions that another one leads",
        ("nonmonotonic-send", "int-nonmonotonic-send", "not-refused"),
        200,
        "",
    ),
    Defect(
        "committed-end-is-the-end",
        (
            Edit(
                "tagwire.broker.handlers.list_offsets:_find",
                "end = log.stable_offset if is_committed else log.end_offset",
                "end = log.end_offset",
            ),
        ),
        "for readers of committed records a partition ends behind what is open",
        ("end-passes-open", "unavailable", "stable-passes-open"),
        300,
        "",
    ),
)

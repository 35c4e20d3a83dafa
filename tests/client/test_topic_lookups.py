"""Who looks for a topic while others do shares what comes of it, if that cannot be older than the question."""

from __future__ import annotations

from typing import Any

from tagwire.client.metadata import ClusterMetadata
from tagwire.client.scheduling import Tasks, Wait
from tagwire.client.topic_lookups import TopicLookups
from tagwire.errors import ConnectionLostError, RequestTimeoutError


class Requests:
    """Requests that a test answers one by one, and what came of those who asked, by number."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tasks = Tasks()
        self.answers: list[Any] = []
        self.sent = 0
        self.is_known = False
        self.outcomes: dict[int, Any] = {}
        self.lookups = TopicLookups(lambda: self.now)

    async def request(self) -> ClusterMetadata:
        number = self.sent = self.sent + 1
        await Wait(lambda: len(self.answers) >= number, 1000.0)
        answer = self.answers[number - 1]
        if isinstance(answer, Exception):
            raise answer
        found: ClusterMetadata = answer
        return found

    def ask(self, number: int, deadline: float = 60.0) -> None:
        work = self.lookups.cluster("t", deadline, self.request, lambda: self.is_known, allow_auto_create=True)
        self.tasks.start(number, work, lambda found, error: self.outcomes.update({number: error or found}))

    def answer(self, answer: Any) -> None:
        self.answers.append(answer)
        self.tasks.step(self.now)


def cluster() -> ClusterMetadata:
    return ClusterMetadata(None, -1, {}, {})


def test_what_was_asked_before_is_enough_where_it_has_the_topic() -> None:
    requests = Requests()
    for number in range(5):
        requests.ask(number)
    requests.is_known = True
    requests.answer(found := cluster())
    assert requests.outcomes == {0: found, **dict.fromkeys(range(1, 5))}
    assert requests.sent == 1


def test_where_it_has_not_the_next_request_is_shared() -> None:
    requests = Requests()
    for number in range(5):
        requests.ask(number)
    requests.answer(cluster())
    requests.answer(second := cluster())
    assert requests.sent == 2
    assert all(requests.outcomes[number] is second for number in range(1, 5))


def test_an_error_is_shared_unless_time_alone_had_run_out() -> None:
    for left, sent in ((50.0, 2), (0.5, 3)):
        requests = Requests()
        for number in range(4):
            requests.ask(number, deadline=60.0 + number)
        requests.answer(ConnectionLostError("of the first"))
        requests.now = 61.0 - left
        requests.answer(ConnectionLostError("of the second"))
        assert requests.sent == sent
        assert (3 in requests.outcomes) is (sent == 2)


def test_nobody_waits_for_others_beyond_its_own_time() -> None:
    requests = Requests()
    requests.ask(0)
    requests.ask(1, deadline=1.0)
    requests.now = 1.0
    requests.tasks.step(requests.now)
    assert isinstance(requests.outcomes[1], RequestTimeoutError)


def test_another_goes_on_where_whoever_asked_is_ended() -> None:
    requests = Requests()
    for number in range(3):
        requests.ask(number)
    requests.tasks.stop(0)
    requests.tasks.step(requests.now)
    assert requests.sent == 2
    requests.answers.append(None)  # to whoever was ended
    requests.answer(found := cluster())
    assert requests.outcomes == {1: found, 2: found}

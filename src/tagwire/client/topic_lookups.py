"""Requests about one topic each, or about the brokers, which everybody shares who looks for the same at a time."""

from __future__ import annotations

from collections.abc import Callable

from tagwire.client.metadata import ClusterMetadata
from tagwire.client.retry import LONGEST_WITH_JITTER
from tagwire.client.scheduling import Wait, Work
from tagwire.errors import RequestTimeoutError, TagwireError, afresh


class _Lookup:
    """One request, and what came of it; neither where whoever sent it was ended before."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.is_over = False
        self.cluster: ClusterMetadata | None = None
        self.error: TagwireError | None = None


class TopicLookups:
    """A thousand tasks that send to a topic which their producer has not heard of make one request, not a thousand.

    A request that is on its way already may have been answered before somebody wants to know, as of a topic that is
    created meanwhile: it is waited for, since mostly it will do, and the next one is shared if it does not.

    Args:
        now: the driver's clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._under_way: dict[tuple[str | None, bool], _Lookup] = {}

    async def cluster(
        self,
        name: str | None,
        deadline: float,
        request: Callable[[], Work[ClusterMetadata]],
        is_known: Callable[[], bool],
        *,
        allow_auto_create: bool,
    ) -> ClusterMetadata | None:
        """What a request tells that was sent after the call; None where what is looked for is known before.

        Args:
            name: of the topic; None for a request about no topic, which tells of brokers.
            request: sends one. is_known: whether what is looked for is known.

        Raises:
            TagwireError: as `request`, of whoever made it. RequestTimeoutError: not before the deadline.
        """
        key = name, allow_auto_create
        earlier = self._under_way.get(key)
        if earlier is not None:
            await self._over(earlier, name, deadline)
            if is_known():
                return None
        while (shared := self._under_way.get(key)) is not None:
            await self._over(shared, name, deadline)
            if shared.cluster is not None:
                return shared.cluster
            if shared.error is not None and not self._ran_out(shared, deadline):
                raise afresh(shared.error)
        own = self._under_way[key] = _Lookup(deadline)
        try:
            own.cluster = await request()
        except TagwireError as error:
            own.error = error
            raise
        finally:
            own.is_over = True
            del self._under_way[key]
        return own.cluster

    async def _over(self, lookup: _Lookup, name: str | None, deadline: float) -> None:
        await Wait(lambda: lookup.is_over, deadline)
        if not lookup.is_over:
            what = "the brokers" if name is None else f"topic {name!r}"
            raise RequestTimeoutError(f"no broker told of {what} in time")

    def _ran_out(self, lookup: _Lookup, deadline: float) -> bool:
        """Whether there was too little time for another attempt, of which who has until `deadline` has more."""
        now = self._now()
        return now + LONGEST_WITH_JITTER >= lookup.deadline and lookup.deadline < deadline and now < deadline

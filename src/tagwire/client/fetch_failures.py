"""What becomes of partitions when a broker refuses them, or says nothing: another attempt, or an error for the user."""

from __future__ import annotations

import logging
from collections.abc import Collection

from tagwire.client.fetch_positions import FetchBuffer, FetchFailure, FetchPosition
from tagwire.client.network_client import NetworkClient
from tagwire.client.retry import LONGEST_PAUSE
from tagwire.client.scheduling import NEVER
from tagwire.errors import Error, KafkaError, TagwireError

logger = logging.getLogger("tagwire.client")


class FetchFailures:
    """Puts partitions off, or hands an error over that no later attempt would mend.

    Args:
        patience: seconds after which an error that may go away is handed over, too; `NEVER`: it is not.
    """

    def __init__(self, network: NetworkClient, buffer: FetchBuffer, patience: float) -> None:
        self._network = network
        self._buffer = buffer
        self.patience = patience
        self._told: TagwireError | None = None

    def hand_over(self, position: FetchPosition, error: TagwireError) -> None:
        """Has `error` raised after all that was fetched before. Then the partition is fetched again, after a pause:
        what is still wrong is found again."""
        position.retry_at = self._network.now() + LONGEST_PAUSE
        self._buffer.put(FetchFailure(position, error))

    def failed(self, position: FetchPosition, error: TagwireError) -> bool:
        """Puts off the next attempt; whether there will be one, and `error` was not handed over."""
        try:
            position.failed(error, self.patience, self._network.driver)
        except TagwireError as final:
            self.hand_over(position, final)
            return False
        if isinstance(error, KafkaError) and error.error is Error.UNKNOWN_SERVER_ERROR:
            logger.warning("%s: it is tried again: %s", position.partition, error)
        return True

    def leaderless(self, position: FetchPosition, error: TagwireError) -> None:
        """As `failed`; a partition that does not exist was waited for already."""
        is_missing = isinstance(error, KafkaError) and error.error is Error.UNKNOWN_TOPIC_OR_PARTITION
        if is_missing and self.patience != NEVER:
            self.hand_over(position, error)
            return
        is_news = is_missing and not position.is_failing and error is not self._told
        if self.failed(position, error) and is_news:  # who has misspelt a topic would wait for ever without a word
            self._told = error  # it is that of all partitions of the topic
            logger.warning("%s: it is waited for: %s", position.partition, error)

    def put_off(self, positions: Collection[FetchPosition], error: TagwireError) -> None:
        """The same of several that failed together, and are tried together again; the error is handed over once."""
        again = 0.0
        for number, position in enumerate(positions):
            if not self.failed(position, error) and not number:
                again = position.retry_at
                break
            again = max(again, position.retry_at)
        for position in positions:
            position.retry_at = again

    def postpone(self, positions: Collection[FetchPosition], error: TagwireError) -> None:
        """As `put_off`, and their leaders are looked for again."""
        self._network.forget({position.partition.topic for position in positions})
        self.put_off(positions, error)

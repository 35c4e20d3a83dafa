"""The topic of a landing as the brokers have it: whether it is still the same one, and what of it they still keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tagwire.errors import StorageError, TagwireError
from tagwire.partitions import EARLIEST, TopicPartition
from tagwire.spark.source.offset_limits import Offsets
from tagwire.spark.tables.identity import Identity

if TYPE_CHECKING:
    from tagwire.client import Client, TopicMetadata

FAIL: Final = "fail"
SKIP: Final = "skip"
_LOST: Final = "failOnDataLoss=false"  # by which the source names every loss


class LandedTopic:
    """Asks the brokers about the topic that a table was begun with.

    Args:
        skip: whether what they no longer keep is passed over.
    """

    def __init__(self, client: Client, identity: Identity, *, skip: bool) -> None:
        self._client = client
        self._identity = identity
        self.skip = skip

    def partitions(self) -> list[int]:
        """Those that it has now, which may not be those that it had when the job began.

        Raises:
            StorageError: it was deleted and created again since. KafkaError: it was deleted.
        """
        return sorted(self._found().partitions)

    def refuse_another(self, because: TagwireError | None = None) -> None:
        """Raises StorageError where it was deleted and created again, KafkaError where it was deleted.

        Args:
            because: what has failed; then nothing else is raised than that it was created again.
        """
        try:
            self._found()
        except StorageError as another:
            raise another from because
        except TagwireError:
            if because is None:
                raise

    def _found(self) -> TopicMetadata:
        identity = self._identity
        found = self._client.metadata([identity.topic]).topics.get(identity.topic)
        if found is None or found.error:  # one that was just created is waited for
            found = self._client.topic(identity.topic)
        if identity.topic_id and found.topic_id.int and str(found.topic_id) != identity.topic_id:
            raise StorageError(
                f"topic {identity.topic!r} was deleted and created again while it was landed (its id was "
                f"{identity.topic_id}, and is {found.topic_id}): the offsets landed are of other records; choose "
                "another directory, or option restart to begin again"
            )
        return found

    def offsets(self, which: int) -> Offsets:
        """`EARLIEST` or `LATEST` of every partition that it has now. Raises as `partitions`."""
        topic = self._identity.topic
        return self._client.list_offsets({TopicPartition(topic, index): which for index in self.partitions()})

    def lost(self, offsets: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """By partition: where the table goes on, and the first offset behind it that brokers keep."""
        topic = self._identity.topic
        kept = self._client.list_offsets({TopicPartition(topic, index): EARLIEST for index in offsets})
        found = {at.partition: offset for at, offset in kept.items()}
        return {index: (at, found[index]) for index, at in offsets.items() if at < found[index]}

    def loss(self, where: str, error: TagwireError) -> StorageError | None:
        """An error of the source as one of the table, where it says that offsets are gone; else None."""
        text = str(error)
        if _LOST not in text:
            return None
        said = text.partition(f" ({_LOST}")[0]
        return StorageError(f"{where}: {said}; option on_data_loss=skip goes on with what is kept")


def refused(where: str, topic: str, lost: Mapping[int, tuple[int, int]]) -> StorageError:
    """What is said of offsets that are neither landed nor kept."""
    said = ", ".join(f"{topic}-{index} goes on at {at}, and begins at {first}" for index, (at, first) in lost.items())
    return StorageError(
        f"{where}: the brokers no longer keep what was to be landed next: {said}; option on_data_loss=skip goes on "
        "with what is kept"
    )

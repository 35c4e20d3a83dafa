"""One Arrow batch, or one response's records, of a reader after the other: what its faces share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tagwire.client.option_types import of_type
from tagwire.client.reader_core import ReaderCore
from tagwire.errors import ConfigError, TagwireError, afresh
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReading:
    """The Arrow batches of a reader. A `next` that ends where it waits has given nothing out, and lost nothing."""

    def __init__(self, core: ReaderCore) -> None:
        self._core = core
        self._has_ended = False
        self._failure: TagwireError | None = None

    async def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end. What is raised is raised again, until `sought`; but for Undecoded, after
        which it is called again."""
        if self._failure is not None:
            raise afresh(self._failure)
        try:
            while not self._has_ended:
                batch = self._core.batch()
                if batch is not None:
                    return batch
                self._has_ended = self._core.finished
                if not self._has_ended:
                    await self._core.fetch()
            self._core.close()
        except TagwireError as error:
            self._failure = error
            raise
        return None

    def interrupted(self) -> None:
        """`next` ended nobody knows where: what was fetched and not given out is to be fetched again."""
        self._core.rewind()

    def sought(self) -> None:
        """A partition goes on from another position: so does a reader that had ended, or raised."""
        if self._failure is not None:
            self._core.rewind()  # what was fetched beside the failure was not all given out
        self._has_ended, self._failure = False, None


class RecordReading:
    """The records of a reader, from the one after the last that was given out. Takes and raises what `Reader.records`
    does."""

    def __init__(
        self, core: ReaderCore, interceptors: Iterable[ConsumerInterceptor], header_serdes: HeaderSerdes | None
    ) -> None:
        of_type("header_serdes", header_serdes, HeaderSerdes, "HeaderSerdes({...})")
        of_type("interceptors", interceptors, Iterable, "a list of functions of a record")
        if core.is_read_as_batches:
            raise ConfigError("records() of a reader that is read as batches: make another reader")
        self._core = core
        self._interceptors = tuple(interceptors)
        self._header_serdes = header_serdes
        core.rewind()

    async def next(self) -> Iterator[Record] | None:
        """The records that the next response brings; None at the end."""
        if self._core.finished:
            return None
        await self._core.fetch()
        return self.there()

    def there(self) -> Iterator[Record]:
        """The records of responses that are there. Where they raise Undecoded, they are asked for again."""
        return self._core.records_there(self._interceptors, self._header_serdes)

"""Gives out what was fetched: as Arrow batches, as lists of records, or one record after the other.

This is the side of whoever asks for records: in their thread, or their task, everything is decoded. It takes from the
`FetchBuffer` that a Fetcher fills, perhaps in another thread, leaves alone what was fetched of paused partitions, drops
what was sought away from or removed meanwhile, and notes in each `FetchPosition` how far it was given out. Kafka's
FetchCollector is the model.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from tagwire.client.decoded_values import Decoded, Undecoded, ValueDecoding
from tagwire.client.decoding import arrow_batches, record_batches
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchBuffer, FetchFailure, FetchPosition
from tagwire.client.reader_settings import DecodingSettings
from tagwire.client.record_decoder import Decoder
from tagwire.errors import TagwireError, afresh
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa


class _Piece(NamedTuple):
    """Part of what is fetched of a partition, decoded; without a batch it only tells how far it goes."""

    batch: pa.RecordBatch | None
    position: FetchPosition
    seeks: int
    after: int
    leader_epoch: int

    @property
    def is_current(self) -> bool:
        return self.seeks == self.position.seeks


class _Decoding:
    """Fetches of a partition that follow one another, on their way to Arrow batches."""

    def __init__(
        self, fetches: Sequence[CompletedFetch], settings: DecodingSettings, values: ValueDecoding | None
    ) -> None:
        self.position = fetches[0].position
        self.seeks = fetches[0].seeks
        self._fetches = fetches
        self._columns = settings.columns
        self._values = values
        self._batches = arrow_batches(fetches, settings if values is None else _with_needed(settings, values))
        self._undecoded: tuple[pa.RecordBatch | None, int] | None = None
        self._error: TagwireError | None = None

    @property
    def is_current(self) -> bool:
        return self.seeks == self.position.seeks

    def next(self) -> _Piece:
        """The next piece; the last one has no batch. Raises as `arrow_batches`, and Undecoded."""
        if self._error is not None:
            raise self._error
        if self._undecoded is None:
            self._undecoded = next(self._batches, (None, self._fetches[-1].next_offset))
        batch, after = self._undecoded
        if batch is not None and batch.num_rows and self._values is not None:
            batch, bad, self._error = self._values.batch(batch, self.position.partition)
            after = after if bad is None else bad
        self._undecoded = None
        if batch is not None and self._values is not None:
            batch = batch.select(list(self._columns))
        fetch = next((one for one in self._fetches if after <= one.next_offset), self._fetches[-1])
        return _Piece(batch, self.position, self.seeks, after, fetch.epoch_before(after))


class _Run:
    """A fetch on its way to records.

    Attributes:
        batch: the records of a batch that are not given out. after: the offset after them.
    """

    def __init__(self, fetch: CompletedFetch, settings: DecodingSettings) -> None:
        self.position = fetch.position
        self.seeks = fetch.seeks
        self.batch: Iterator[Record] = iter(())
        self.after = fetch.start_offset
        self._fetch = fetch
        self._leader_epoch = UNKNOWN  # of the batch
        self._has_begun = False
        self._batches = record_batches(fetch, settings)

    @property
    def is_current(self) -> bool:
        return self.seeks == self.position.seeks

    def advance(self) -> bool:
        """Goes on to the next batch when all of this one were given out; False where there is none. Raises as
        `record_batches`."""
        if self._has_begun:
            self.position.give(self.seeks, self.after, self._leader_epoch)  # the batch may end with none
        found = next(self._batches, None)
        if found is None:
            after = self._fetch.next_offset
            self.position.give(self.seeks, after, self._fetch.epoch_before(after))
            return False
        self.batch, self.after, self._leader_epoch = found
        self._has_begun = True
        return True

    def give(self, record: Record) -> None:
        """Everything up to `record` was given out."""
        self.position.give(self.seeks, record.offset + 1, self._leader_epoch)

    def put_back(self, records: Iterable[Record]) -> None:
        """These were not given out after all."""
        self.batch = chain(records, self.batch)


def _with_needed(settings: DecodingSettings, values: ValueDecoding) -> DecodingSettings:
    """With the columns that decoding values, and telling which is bad, takes."""
    needed = ("offset", "headers") if values.needs_headers else ("offset",)
    return replace(settings, columns=(*settings.columns, *(one for one in needed if one not in settings.columns)))


class FetchCollector:
    """What was fetched, decoded in the caller's thread, which calls all methods; read in one way at a time.

    What is wrong with a partition is raised after all that was fetched before. A batch that is broken is raised again
    whenever nothing else is there, until the partition is sought or removed: nothing after it is given out. Where
    values are decoded by their schemas, everything that gives something raises Undecoded before.

    Attributes:
        values: what decodes values and keys; None where they stay bytes.
    """

    def __init__(self, buffer: FetchBuffer, decoding: DecodingSettings) -> None:
        self._buffer = buffer
        self._settings = decoding
        self.values = None if decoding.formats is None else ValueDecoding(decoding.formats)
        self._held: dict[FetchPosition, list[CompletedFetch]] = {}
        self._decodings: list[_Decoding] = []
        self._pending: _Piece | None = None
        self._small: list[_Piece] = []
        self._small_rows = self._small_bytes = 0
        self._runs: list[_Run] = []
        self._put_off: FetchFailure | None = None  # what is to be raised next
        self._met: FetchFailure | None = None  # what was raised last of what is wrong with a partition
        self._broken: dict[FetchPosition, tuple[int, TagwireError]] = {}
        self._given: Record | None = None  # by `one_by_one`, last
        self._given_run: _Run | None = None

    @property
    def is_read_as_batches(self) -> bool:
        """Whether batches are begun that are not given out."""
        return bool(self._held or self._decodings or self._small or self._pending)

    @property
    def has_begun(self) -> bool:
        """Whether something is taken from the buffer that may be given out without waiting: records or an error."""
        return (
            self._due_failure() is not None
            or any(run.is_current and not run.position.is_paused for run in self._runs)
            or any(one.is_current and not one.position.is_paused for one in self._decodings)
        )

    def clear(self) -> None:
        """Drops everything that waits; the Fetcher fetches it anew (`Fetcher.rewind`)."""
        self._settle()
        self._buffer.clear()
        self._held.clear()
        self._decodings.clear()
        self._runs.clear()
        self._broken.clear()
        self._pending = self._put_off = None
        self._keep([])

    # Arrow batches -------------------------------------------------------------------------------------------------

    def batch(self, *, flush: bool) -> pa.RecordBatch | None:
        """The next batch that has enough rows, of a partition that has no more, or of several that have little each;
        None where more has to come first.

        Args:
            flush: whether to wait for no more: what is there is given.

        Raises:
            CorruptRecordError, UnsupportedVersionError: naming the partition and the offset, after all that stands
                before. What the Fetcher hands over.
        """
        while True:
            piece = self._next_piece()
            if piece is not None:
                given = None
                if self._small and self._is_fair(piece.batch):
                    given = self._give_small()
                    if given is not None:
                        self._pending = piece
                        return given
                self._add(piece)
                if self._small_rows >= self._settings.batch_rows // 2 or (
                    self._small_bytes >= self._settings.batch_bytes // 2
                ):
                    given = self._give_small()
            elif (failure := self._due_failure()) is not None:
                given = self._give_small()
                if given is None:
                    self._put_off = None
                    raise failure.error
            elif self._begin_decoding(flush):
                continue
            else:
                given = self._give_small() if flush else None
                if given is None:
                    self._raise_broken()
                    return None
            if given is not None:
                return given

    def _next_piece(self) -> _Piece | None:
        piece, self._pending = self._pending, None
        if piece is not None:
            return piece
        self._decodings = [one for one in self._decodings if one.is_current]
        for decoding in self._decodings:
            if decoding.position.is_paused:
                continue
            try:
                piece = decoding.next()
            except TagwireError as error:
                self._broken[decoding.position] = decoding.seeks, error
                self._put_off = FetchFailure(decoding.position, error)
            if piece is None or piece.batch is None:
                self._decodings.remove(decoding)
            return piece
        return None

    def _begin_decoding(self, flush: bool) -> bool:
        """Takes what has come, and begins with what is due of it. Whether that is anything."""
        while (fetched := self._buffer.take()) is not None:
            position = fetched.position
            if self._is_broken(position):
                continue
            if isinstance(fetched, FetchFailure):
                self._put_off = fetched
                self._decode([position for position in self._held if not position.is_paused])
                return True
            held = self._held.get(position, [])
            if held and held[-1].is_current and held[-1].next_offset != fetched.start_offset:
                self._decode([position])
                self._held[position] = [fetched]
                return True
            self._held[position] = [*held, fetched] if held and held[-1].is_current else [fetched]
        due = [
            position
            for position, fetches in self._held.items()
            if not fetches[0].is_current or (not position.is_paused and (flush or self._is_due(fetches)))
        ]
        self._decode(due)
        return bool(due)

    def _decode(self, positions: Sequence[FetchPosition]) -> None:
        for position in positions:
            fetches = self._held.pop(position, None)
            if fetches is not None and fetches[0].is_current:
                self._decodings.append(_Decoding(fetches, self._settings, self.values))

    def _is_due(self, fetches: list[CompletedFetch]) -> bool:
        return (
            not fetches[0].position.has_more
            or sum(fetch.record_count for fetch in fetches) >= self._settings.batch_rows
            or sum(len(fetch.records) for fetch in fetches) >= self._settings.batch_bytes
        )

    def _is_fair(self, batch: pa.RecordBatch | None) -> bool:
        """Whether a batch is large enough to be given as it is."""
        return batch is not None and (
            batch.num_rows >= self._settings.batch_rows // 2 or batch.nbytes >= self._settings.batch_bytes // 2
        )

    def _add(self, piece: _Piece) -> None:
        self._small.append(piece)
        if piece.batch is not None:
            self._small_rows += piece.batch.num_rows
            self._small_bytes += piece.batch.nbytes

    def _give_small(self) -> pa.RecordBatch | None:
        """What small batches have become together, of the partitions that are not paused; None where they have no
        rows."""
        pieces = [piece for piece in self._small if piece.is_current]
        kept = [piece for piece in pieces if piece.position.is_paused]
        pieces = [piece for piece in pieces if not piece.position.is_paused]
        if self.values is not None:  # topics may have different types
            full = [
                (piece.position, piece.batch.schema)
                for piece in pieces
                if piece.batch is not None and piece.batch.num_rows
            ]
            others = {position for position, schema in full if schema != full[0][1]}
            kept += [piece for piece in pieces if piece.position in others]
            pieces = [piece for piece in pieces if piece.position not in others]
        self._keep(kept)
        for piece in pieces:
            piece.position.give(piece.seeks, piece.after, piece.leader_epoch)
        batches = [piece.batch for piece in pieces if piece.batch is not None and piece.batch.num_rows]
        if not batches:
            return None
        return batches[0] if len(batches) == 1 else _joined(batches)

    def _keep(self, small: list[_Piece]) -> None:
        self._small, self._small_rows, self._small_bytes = [], 0, 0
        for piece in small:
            self._add(piece)

    # Records -------------------------------------------------------------------------------------------------------

    def records(self, most: int, decoder: Decoder | None = None) -> list[Record]:
        """Up to `most` records that are there now, in order within each partition; they count as given out.

        Raises:
            DecodeError: by `decoder`; the record is not given out, and raised again. Otherwise as `batch`.
        """
        if self._given_run is not None:
            self._settle()
        found: list[Record] = []
        while len(found) < most:
            run = None
            try:
                run = self._next_run()
                if run is None:
                    break
                while not (read := list(islice(run.batch, most - len(found)))) and self._advance(run):
                    pass
                if not read:
                    continue
            except TagwireError as error:
                if run is not None:
                    self._met = FetchFailure(run.position, error)
                if not found:
                    raise
                self._put_off = self._met  # its turn is the next one
                break
            try:
                given = self._decoded(run, read, decoder)
            except Undecoded:
                if not found:
                    raise
                break
            found += given.records
            if given.taken:
                last = read[given.taken - 1]
                if given.taken == len(read) and last.offset + 1 >= run.after:
                    self._pass_end(run)
                else:
                    run.give(last)
            if given.error is not None and not found:
                raise given.error
            if self._put_off is not None or given.error is not None:
                break
        if not found and self._broken:
            self._raise_broken()
        return found

    def one_by_one(self, decoder: Decoder | None = None) -> Iterator[Record]:
        """The records that are there, each given out when the next one is asked for, or when `note_given` is called.

        Raises as `records`.
        """
        self._settle()
        gave_any = False
        while (run := self._next_run()) is not None:
            position, turn = run.position, run.position.turn
            self._given_run = run
            each = run.batch if decoder is None else self._each(run, decoder)
            for record in each:
                if decoder is None:
                    self._given = record
                given = self._given
                yield record
                gave_any = True
                if self._given is not given or position.turn != turn:
                    if isinstance(each, Generator):
                        each.close()
                    self._settle()
                    break
            else:
                self._settle()
                self._advance(run)
        if not gave_any:
            self._raise_broken()

    def _each(self, run: _Run, decoder: Decoder) -> Generator[Record, None, None]:
        """What is left of a batch, decoded, each given out as `one_by_one` says; what is not asked for is put back."""
        while read := list(islice(run.batch, decoder.ahead)):
            given = self._decoded(run, read, decoder)
            done = 0
            try:
                for record, place in zip(given.records, given.places):
                    done, self._given = place + 1, read[place]
                    yield record
                done = given.taken
            finally:
                if done < given.taken:
                    run.put_back(read[done : given.taken])
            if given.error is not None:
                raise given.error

    def note_given(self) -> None:
        """The record that `one_by_one` gave last is given out."""
        if self._given is not None and self._given_run is not None:
            self._given_run.give(self._given)

    def _settle(self) -> None:
        """The same, and what comes next begins after it."""
        self.note_given()
        self._given_run = self._given = None

    def _next_run(self) -> _Run | None:
        """What may have records to give; None where nothing has. Raises what is handed over."""
        if self._runs:
            self._runs = [run for run in self._runs if run.seeks == run.position.seeks]
            for run in self._runs:
                if not run.position.is_paused:
                    return run
        if (failure := self._due_failure()) is not None:
            self._met, self._put_off = failure, None
            raise failure.error
        while (fetched := self._buffer.take()) is not None:
            if self._is_broken(fetched.position):
                continue
            if isinstance(fetched, FetchFailure):
                self._met = fetched
                raise fetched.error
            run = _Run(fetched, self._settings)
            self._runs.append(run)
            return run
        return None

    def _advance(self, run: _Run) -> bool:
        """Goes on to the next batch, and forgets a run that has none left; whether it has. Raises as
        `record_batches`."""
        has_more = False
        try:
            has_more = run.advance()
        except TagwireError as error:
            self._broken[run.position] = run.seeks, error
            raise
        finally:
            if not has_more:
                self._runs = [one for one in self._runs if one is not run]
        return has_more

    def _pass_end(self, run: _Run) -> None:
        """Goes beyond what holds no records for users, so that it need not be fetched again."""
        try:
            self._advance(run)
        except TagwireError as error:
            self._put_off = FetchFailure(run.position, error)

    def _decoded(self, run: _Run, records: list[Record], decoder: Decoder | None) -> Decoded:
        """Records of a run as they are given out; those from the first on that is wrong are put back. Raises
        Undecoded."""
        if decoder is None:
            return Decoded(records, (), len(records))
        taken = 0
        try:
            found = decoder.decoded(records)
            taken = found.taken
        finally:
            if taken < len(records):
                run.put_back(records[taken:])
        return found

    def _due_failure(self) -> FetchFailure | None:
        """What was put off, unless its partition was sought away from or left meanwhile."""
        if self._put_off is not None and not self._put_off.is_current:
            self._put_off = None
        return self._put_off

    def put_off(self, error: TagwireError) -> bool:
        """Has `records` raise again what it has just raised, unless that is sought away from before; whether it is what
        is wrong with a partition."""
        is_known = self._met is not None and self._met.error is error
        if is_known:
            self._put_off = self._met
        return is_known

    # Batches that are broken ---------------------------------------------------------------------------------------

    def _is_broken(self, position: FetchPosition) -> bool:
        return position in self._broken and self._broken[position][0] == position.seeks

    def _raise_broken(self) -> None:
        self._broken = {position: one for position, one in self._broken.items() if self._is_broken(position)}
        for position, (_, error) in self._broken.items():
            if not position.is_paused:
                raise afresh(error)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

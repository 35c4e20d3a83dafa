"""From records as they were fetched to those that are given out: values decoded, headers deserialized, interceptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tagwire.client.decoded_values import Decoded, ValueDecoding
from tagwire.errors import TagwireError
from tagwire.records import HeaderSerdes, Record
from tagwire.records.interceptors import ConsumerInterceptor, after_decoding

# So many values are decoded together where records are read one by one: as `max_poll_records` is in Kafka.
_AHEAD: Final = 500


class Decoder:
    """What makes of records that were read those that are given out.

    Args:
        one: does it with one after its value is decoded; it may raise DecodeError.

    Attributes:
        ahead: how many are decoded at a time where records are read one by one.
    """

    def __init__(self, one: Callable[[Record], Record] | None, values: ValueDecoding | None) -> None:
        self._one = one
        self._values = values
        self.ahead = 1 if values is None else _AHEAD

    def decoded(self, records: list[Record]) -> Decoded:
        """Those before the first that is wrong. Raises Undecoded."""
        if self._values is None:
            known = Decoded(records, range(len(records)), len(records))
        else:
            known = self._values.records(records)
        if self._one is None:
            return known
        found: list[Record] = []
        for record, place in zip(known.records, known.places):
            try:
                found.append(self._one(record))
            except TagwireError as error:
                return Decoded(found, known.places, place, error)
        return Decoded(found, known.places, known.taken, known.error)


def decoder_of(
    interceptors: Sequence[ConsumerInterceptor], header_serdes: HeaderSerdes | None, values: ValueDecoding | None = None
) -> Decoder | None:
    """What makes of records that were read those that are given out; None where they are the same."""
    changes = bool(interceptors) or header_serdes is not None
    if not changes and values is None:
        return None

    def one(record: Record) -> Record:
        known = record if header_serdes is None else header_serdes.deserialized(record)
        return after_decoding(known, interceptors)

    return Decoder(one if changes else None, values)

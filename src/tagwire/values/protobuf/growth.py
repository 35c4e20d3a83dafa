"""How much a value grows when it becomes columns: an empty message of two bytes is a value in each of its columns.

What a value may become is bounded before anything is made of it. Most are too short to come near the bound.
"""

from __future__ import annotations

from typing import Final

from tagwire.values.protobuf.mapping import FieldPlan, MessagePlan

MAX_VALUES: Final = 1 << 27
"""In all columns together, for one message: about 1 GiB."""


class Growth:
    """What messages of a plan become.

    Attributes:
        harmless: bytes, of a message that cannot become too much.
    """

    def __init__(self, plan: MessagePlan) -> None:
        self._plan = plan
        self._widths: dict[MessagePlan, int] = {}
        self._fields: dict[MessagePlan, dict[int, MessagePlan | None]] = {}
        self._width(plan)
        # An element takes two bytes at least.
        self.harmless = 2 * MAX_VALUES // max(self._widths.values())

    def outgrows(self, body: bytes) -> bool:
        """Whether a message becomes more than `MAX_VALUES`; False for what is none."""
        if len(body) <= self.harmless:
            return False
        found = 0
        waiting = [(self._plan, 0, len(body))]
        while waiting:
            plan, place, end = waiting.pop()
            found += self._widths[plan]
            if found > MAX_VALUES:
                return True
            fields = self._fields[plan]
            while place < end:
                tag, place = _varint(body, place, end)
                wire_type = tag & 7
                if wire_type == 2:
                    size, place = _varint(body, place, end)
                    inner = fields.get(tag >> 3)
                    if inner is not None:
                        waiting.append((inner, place, min(place + size, end)))
                    place += size
                elif wire_type == 0:
                    place = _varint(body, place, end)[1]
                elif wire_type in (1, 5):
                    place += 8 if wire_type == 1 else 4
                # Of groups the tags are passed over; what is in them counts as if it stood outside.
        return False

    def _width(self, plan: MessagePlan) -> int:
        """The columns of a message, with those of single messages in it, which have them though they are absent."""
        if plan not in self._widths:
            fields: dict[int, MessagePlan | None] = {}
            width = 1
            for field in plan.fields:
                inner = _message_of(field)
                fields[field.number] = inner
                below = 0 if inner is None else self._width(inner)
                width += 1 if field.repeated else 1 + below
            self._fields[plan], self._widths[plan] = fields, width
        return self._widths[plan]


def _message_of(field: FieldPlan) -> MessagePlan | None:
    if field.key is None or field.value is None:
        return field.message
    return MessagePlan(field.name, (field.key, field.value), requires=False, groups=False)


def _varint(body: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:
            break
        shift += 7
    return value, place

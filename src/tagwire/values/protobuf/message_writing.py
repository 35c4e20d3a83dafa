"""Messages written by Protobuf's own library, a row at a time: what ptars does not write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagwire.errors import EncodeError
from tagwire.extras import Needs
from tagwire.values.protobuf.column_fitting import FittedField
from tagwire.values.protobuf.mapping import Shape

with Needs("protobuf"):
    from google.protobuf.message import EncodeError as _Refused

if TYPE_CHECKING:
    from google.protobuf.message import Message


def body_of(message: type[Message], fields: Sequence[FittedField], row: Mapping[str, Any]) -> bytes:
    """A body of fitted values.

    Raises:
        EncodeError: Protobuf refuses it.
    """
    made = message()
    _fill(made, fields, row)
    try:
        return message.SerializeToString(made, deterministic=True)
    except (_Refused, ValueError) as error:
        raise EncodeError(str(error)) from None


def _fill(message: Any, fields: Sequence[FittedField], row: Mapping[str, Any]) -> None:
    for fitting in fields:
        plan, value = fitting.plan, row[fitting.plan.name]
        if value is None:
            continue
        if plan.value is not None:
            entries = getattr(message, plan.name)
            for key, each in ((entry["key"], entry["value"]) for entry in value):
                if plan.value.message is not None or plan.value.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
                    _set(entries[key])
                    _one(entries[key], plan.value, fitting.fields, each)
                else:
                    entries[key] = each
        elif plan.message is not None or plan.shape in (Shape.TIMESTAMP, Shape.INTERVAL):
            for each in value if plan.repeated else [value]:
                inner = getattr(message, plan.name)
                inner = inner.add() if plan.repeated else inner
                _set(inner)
                _one(inner, plan, fitting.fields, each)
        elif plan.repeated:
            getattr(message, plan.name).extend(value)
        else:
            setattr(message, plan.name, value)


def _set(message: Any) -> None:
    """Makes a message be there without any field; by its class, since a field may be called like the method."""
    type(message).SetInParent(message)


def _one(message: Any, plan: Any, fields: Sequence[FittedField], value: Mapping[str, Any]) -> None:
    if plan.message is None:
        message.seconds, message.nanos = value["seconds"], value["nanos"]
    else:
        _fill(message, fields, value)

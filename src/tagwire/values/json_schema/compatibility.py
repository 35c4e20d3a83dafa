"""Whether what one JSON Schema allows is allowed by another, as far as both give types."""

from __future__ import annotations

from typing import Final

from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.shapes import Shape

# What may become what: a reader of the second takes all that the first has.
_WIDER: Final = {
    (shapes.INTEGER, shapes.NUMBER),
    (shapes.INTEGER, shapes.DECIMAL),
    (shapes.DATE, shapes.STRING),
    (shapes.TIMESTAMP, shapes.STRING),
    (shapes.BYTES, shapes.STRING),
    (shapes.DAYS, shapes.INTEGER),
    (shapes.MILLIS, shapes.INTEGER),
    (shapes.STRUCT, shapes.MAP),
}


def differences(older: Shape, newer: Shape, where: str = "") -> list[str]:
    """Why `newer` cannot read what `older` allows, one line each, naming the place."""
    at = where or "the value"
    found: list[str] = []
    if older.is_nullable and not newer.is_nullable:
        found.append(f"{at}: may be null in the older schema only")
    if newer.choices is not None and newer.choices != older.choices:
        if older.choices is None:
            found.append(f"{at}: the older schema allows any value, the newer one only some")
        elif lost := sorted(older.choices - newer.choices):
            found.append(f"{at}: {', '.join(lost)} is allowed by the older schema only")
    if newer.kind == shapes.ANY:
        return found
    if older.kind != newer.kind and (older.kind, newer.kind) not in _WIDER:
        return [*found, f"{at}: is {older.kind} in the older schema, {newer.kind} in the newer one"]
    if newer.kind in (shapes.INTEGER, shapes.NUMBER) and older.kind == newer.kind and newer.bits < older.bits:
        found.append(f"{at}: has {older.bits} bits in the older schema, {newer.bits} in the newer one")
    if newer.kind == shapes.DECIMAL and older.kind == shapes.DECIMAL:
        whole = (one.precision - one.scale for one in (older, newer))
        if newer.scale < older.scale or next(whole) > next(whole):
            found.append(f"{at}: decimals have fewer digits in the newer schema")
    if newer.kind == shapes.MAP and older.kind == shapes.STRUCT:
        assert newer.item is not None
        for one in older.properties:
            found += differences(one.shape, newer.item, f"{where}.{one.name}".lstrip("."))
    elif newer.kind in (shapes.STRUCT, shapes.ENTRIES):
        found += _of_properties(older, newer, where)
    if older.item is not None and newer.item is not None:
        found += differences(older.item, newer.item, f"{where}[]" if newer.kind == shapes.LIST else f"{where}.*")
    return found


def _of_properties(older: Shape, newer: Shape, where: str) -> list[str]:
    found: list[str] = []
    before = {one.name: one for one in older.properties}
    names = {one.name for one in newer.properties}
    for one in newer.properties:
        at = f"{where}.{one.name}".lstrip(".")
        if one.name in before:
            found += differences(before[one.name].shape, one.shape, at)
        if one.is_required and not (one.name in before and before[one.name].is_required):
            found.append(f"{at}: is required by the newer schema only")
    if newer.is_closed:
        if not older.is_closed:
            found.append(f"{where or 'the value'}: the older schema allows properties that it does not name")
        found += [
            f"{f'{where}.{name}'.lstrip('.')}: is no property of the newer schema, which allows no other"
            for name in before
            if name not in names
        ]
    return found

"""The text of a JSON Schema and of those it refers to, and what a `$ref` in them means. Nothing is ever fetched.

Source: JSON Schema's core specifications; RFC 6901.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from tagwire.errors import ValueSchemaError
from tagwire.values.schemas import JSON, Schema

Node: TypeAlias = dict[str, Any] | bool
"""A schema as JSON: an object, or true and false."""

LONGEST: Final = 10_000_000
"""The characters that a schema's text may have."""

_OLD_DRAFT: Final = re.compile(r"json-schema\.org/draft-0[3-7]/")
_DEEPEST: Final = 500
_LONGEST_INDEX: Final = 10


@dataclass(eq=False)
class Document:
    """One schema's text as JSON.

    Attributes:
        name: how errors call it: the name that it is referred to by, "" for the schema itself.
        others: the documents that it may refer to, by the name that it calls each.
        is_old: whether a `$ref` hides what stands beside it, as up to draft 7.
    """

    root: Node
    name: str = ""
    others: dict[str, Document] = field(default_factory=dict)
    is_old: bool = True
    _by_id: dict[str, Node] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The URI that it says it has, or the name that it is referred to by."""
        found = identifier(self.root)
        return urljoin(self.name, found) if found else self.name

    def find(self, reference: str, where: str) -> tuple[Node, Document]:
        """The schema that a `$ref` of this document means, and the document that has it.

        Raises:
            ValueSchemaError: there is none.
        """
        try:
            address, fragment = urldefrag(reference)
            holder = self._document(reference, address, where)
        except ValueError:
            raise ValueSchemaError(f"{where}: $ref {reference!r} is no address") from None
        if not fragment:
            return holder.root, holder
        found = holder._by_id.get("#" + fragment)
        if found is None and fragment.startswith("/"):
            found = _pointed_to(holder.root, unquote(fragment))
        if found is None:
            raise ValueSchemaError(f"{where}: $ref {reference!r} leads to nothing")
        if not isinstance(found, (dict, bool)):
            raise ValueSchemaError(f"{where}: $ref {reference!r} leads to no schema")
        return found, holder

    def _document(self, reference: str, address: str, where: str) -> Document:
        full = urljoin(self.base, address)
        if not address or full == self.base:
            return self
        for name in (reference, address, full):
            if name in self.others:
                return self.others[name]
        for other in self.others.values():
            if other.base in (address, full):
                return other
        for name in (full, address):
            if name in self._by_id:
                return Document(self._by_id[name], name, self.others, self.is_old, self._by_id)
        raise ValueSchemaError(f"{where}: $ref {reference!r} is no reference of the schema; nothing is fetched for it")


def parse(schema: Schema, name: str = "") -> Document:
    """A schema and its references as documents.

    Raises:
        ValueSchemaError: the text is no JSON Schema, or of another type.
    """
    called = f"schema {name!r}" if name else "schema"
    if schema.schema_type != JSON:
        raise ValueSchemaError(f"{called}: is of type {schema.schema_type}, not {JSON}")
    if len(schema.text) > LONGEST:
        raise ValueSchemaError(f"{called}: has {len(schema.text):,} characters, more than {LONGEST:,}")
    try:
        root = json.loads(schema.text)
    except ValueError as error:
        raise ValueSchemaError(f"{called}: is no JSON: {error}") from None
    except RecursionError:
        raise ValueSchemaError(f"{called}: is nested too deep") from None
    if not isinstance(root, (dict, bool)):
        raise ValueSchemaError(f"{called}: a JSON Schema is an object, not {type(root).__name__}")
    draft = str(root.get("$schema", "")) if isinstance(root, dict) else ""
    found = Document(root, name, is_old=not draft or bool(_OLD_DRAFT.search(draft)))
    try:
        _identify(root, found.base, found._by_id, 0)
    except ValueError:
        raise ValueSchemaError(f"{called}: an $id in it is no address") from None
    found.others = {other: parse(referred, other) for other, referred in schema.references}
    return found


def identifier(node: Node) -> str:
    """What a schema says it is called, "" for nothing: `$id`, in draft 4 `id`."""
    if not isinstance(node, dict):
        return ""
    found = node.get("$id", node.get("id", ""))
    return found if isinstance(found, str) else ""


def _identify(node: object, base: str, by_id: dict[str, Node], depth: int) -> None:
    """Notes every schema within another that has a name of its own: an `$id`, an `$anchor`."""
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for one in node:
            _identify(one, base, by_id, depth + 1)
    elif isinstance(node, dict):
        if depth and (own := identifier(node)):
            by_id.setdefault(own if own.startswith("#") else urljoin(base, own), node)
        if isinstance(anchor := node.get("$anchor"), str):
            by_id.setdefault("#" + anchor, node)
        for one in node.values():
            if isinstance(one, (dict, list)):
                _identify(one, base, by_id, depth + 1)


def _pointed_to(root: object, pointer: str) -> Any:
    found: Any = root
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and len(step) < _LONGEST_INDEX and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found

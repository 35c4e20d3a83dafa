"""What a page is made of, whoever shows it: plain data that `tagwire.reference.html` and `.text` render."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tagwire.codec.annotate import Span
from tagwire.spec.versions import Versions


@dataclass(frozen=True, slots=True)
class Code:
    """Text in the letters of a program."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to another page of the reference, or to a heading of one.

    Attributes:
        page: the `path` of a page; "" is the front page.
        anchor: the id of a heading or row there; "" for its top.
    """

    text: str
    page: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A word that stands out: `kind` is good, warning or bad."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Download:
    """Text that leads to a file beside the pages, such as `releases.csv`."""

    text: str
    file: str


Inline = str | Code | Link | Mark | Download
Text = Sequence[Inline]
"""Running text; a plain str is text as well, and each character of it stands for itself."""


def plain(text: Text) -> str:
    """Running text without its marks."""
    return text if isinstance(text, str) else "".join(map(_piece, text))


def _piece(one: Inline) -> str:
    return one if isinstance(one, str) else one.text


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: Text


@dataclass(frozen=True, slots=True)
class Items:
    """A list, in which the order has no meaning."""

    items: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, the first cell its heading.

    Attributes:
        anchor: an id, unique in the page; "" for none.
        kind: of the whole row, as a `Mark` has one; "" for none.
    """

    cells: Sequence[Text]
    anchor: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under titles.

    Attributes:
        caption: what it holds, in a few words.
        can_filter: whether a reader may narrow the rows by what they type.
    """

    caption: str
    titles: Sequence[str]
    rows: Sequence[Row]
    can_filter: bool = False


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of a message, as all its versions have it.

    Attributes:
        path: such as `Topics.Partitions`.
        depth: how many structs it stands in.
        versions: where it exists, among the message's own.
        default: None where it is just the type's own.
        compact: the versions in which its length is a varint, where that is not the message's flexible versions.
    """

    path: str
    name: str
    depth: int
    type: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    optional: bool
    default: str | None
    ignorable: bool
    map_key: bool
    entity_type: str
    compact: Versions | None
    about: str

    def at(self, version: int) -> str:
        """What `version` has of it, in a word or three: "" where it lacks the field."""
        if version not in self.versions:
            return ""
        said = [f"tag {self.tag}"] if self.tag is not None and version in self.tagged else []
        said += ["null"] if version in self.nullable else []
        return " ".join(said) or "yes"


@dataclass(frozen=True, slots=True)
class FieldMatrix:
    """Fields against versions.

    Attributes:
        anchor: the beginning of the rows' ids.
    """

    caption: str
    anchor: str
    versions: Versions
    fields: Sequence[FieldRow]


@dataclass(frozen=True, slots=True)
class Bytes:
    """An encoded example, and what each of its bytes means.

    Attributes:
        anchor: an id, unique in the page.
        spans: in order, without gaps.
    """

    caption: str
    anchor: str
    data: bytes
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Compare:
    """Where a script puts the choice of any two releases, or of any two versions of an API. Without it: nothing."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it.

    Attributes:
        anchor: the heading's id, unique in the page; it does not change between releases of tagwire.
    """

    title: str
    anchor: str
    blocks: Sequence[Block]


Block = Paragraph | Items | Table | FieldMatrix | Bytes | Compare | Section


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        path: where it stands in the reference, such as `apis/Fetch`; "" is the first page.
        group: what it is listed under.
        summary: what it is about, in a sentence or two.
        facts: the same for programs, as JSON has it.
    """

    path: str
    title: str
    group: str
    summary: Text
    blocks: Sequence[Block]
    facts: dict[str, Any]

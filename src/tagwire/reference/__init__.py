"""The protocol's reference, made from the catalog: a page for each API and record type, as HTML, as text and as JSON.

reference.write(Path("site/reference"))       # all of it
for entry in reference.entries(): ...         # title, path and HTML of each page, to put into a site
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tagwire.reference.blocks import Page as Page
    from tagwire.reference.shelf import Shelf as Shelf
    from tagwire.reference.writing import Entry as Entry
    from tagwire.reference.writing import entries as entries
    from tagwire.reference.writing import files as files
    from tagwire.reference.writing import write as write

__all__ = ["Entry", "Page", "Shelf", "entries", "files", "write"]


def __getattr__(name: str) -> Any:
    """Each from its module when it is first asked for: the decoder in a browser has no use for the pages."""
    if name not in __all__:
        raise AttributeError(f"module 'tagwire.reference' has no attribute {name!r}")
    from tagwire.reference import blocks, shelf, writing

    found = {"Page": blocks, "Shelf": shelf}.get(name, writing)
    return getattr(found, name)

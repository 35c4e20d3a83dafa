"""The protocol's reference, made from the catalog: a page for each API and record type, as HTML, as text and as JSON.

reference.write(Path("site/reference"))       # all of it
for entry in reference.entries(): ...         # title, path and HTML of each page, to put into a site
"""

from __future__ import annotations

from tagwire.reference.blocks import Page
from tagwire.reference.shelf import Shelf
from tagwire.reference.writing import Entry, entries, files, write

__all__ = ["Entry", "Page", "Shelf", "entries", "files", "write"]

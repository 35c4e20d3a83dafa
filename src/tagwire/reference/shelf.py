"""All pages of the reference by path, each made when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tagwire.reference import general_pages, release_pages, subject_pages
from tagwire.reference.blocks import Page
from tagwire.reference.subjects import Subject, kafkas


class Shelf:
    """The pages of one reference.

    Args:
        own: subjects of a user's specs, which have pages besides Kafka's.

    Attributes:
        subjects: what has a page of its own; a user's come first.
        general: the paths of the pages that are about no single message, but for the front page.
    """

    def __init__(self, own: Sequence[Subject] = ()) -> None:
        self.subjects = (*own, *kafkas())
        self._makers: dict[str, Callable[[], Page]] = {"": lambda: general_pages.front(self.subjects)}
        for subject in self.subjects:
            self._makers[subject.path] = lambda subject=subject: subject_pages.page(subject)  # type: ignore[misc]
        general: dict[str, Callable[[], Page]] = {
            **release_pages.makers(),
            "errors": general_pages.errors,
            "kips": lambda: general_pages.kips(self.subjects),
        }
        self.general = tuple(general)
        self._makers |= general

    def paths(self) -> list[str]:
        """Where the pages stand, in the order of a table of contents; the first is the front page."""
        return list(self._makers)

    def page(self, path: str) -> Page:
        """The page at `path`. Raises KeyError where there is none."""
        return self._makers[path]()

    def __iter__(self) -> Iterator[Page]:
        return map(self.page, self._makers)

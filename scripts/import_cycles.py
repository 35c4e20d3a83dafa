"""Circles of imports among the files of src/, lazy and type-only imports counted.   python scripts/import_cycles.py

Ends with 1 where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import grimp

SOURCES = Path(__file__).parent.parent / "src"
PACKAGES = ("tagwire", "pyspark_tagwire", "pyspark_tagwire_capture", "pyspark_tagwire_segments")


def imports() -> dict[str, set[str]]:
    """{file: the files that it imports}, as module names."""
    sys.path.insert(0, str(SOURCES))
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def circles(imported: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of modules in which each reaches each other."""
    reached = {module: _reached(module, imported) for module in imported}
    return {
        frozenset(other for other in found if module in reached.get(other, ()))
        for module, found in reached.items()
        if module in found
    }


def _reached(module: str, imported: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [module]
    while ahead:
        for other in imported.get(ahead.pop(), ()):
            if other not in found:
                found.add(other)
                ahead.append(other)
    return found


def main() -> int:
    found = circles(imports())
    for circle in sorted(map(sorted, found)):
        print(f"a circle of imports: {', '.join(circle)}: move what they share to a file of its own")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

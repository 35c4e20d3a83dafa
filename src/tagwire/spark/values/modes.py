"""What becomes of a value that cannot be decoded or encoded: Spark's parse modes.

Source: Spark's ParseMode.
"""

from __future__ import annotations

from typing import Final

PERMISSIVE: Final = "PERMISSIVE"
"""The value is null; a column of corrupt records, where there is one, holds its bytes."""

DROPMALFORMED: Final = "DROPMALFORMED"
"""Its row is left out; of a function, which cannot leave out rows, it is null."""

FAILFAST: Final = "FAILFAST"
"""The query fails, naming the row."""

MODES: Final = (PERMISSIVE, DROPMALFORMED, FAILFAST)

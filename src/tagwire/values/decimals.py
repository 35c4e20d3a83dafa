"""Which decimals Arrow can be given."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

FARTHEST_EXPONENT: Final = 1_000
"""Arrow's decimals have 76 digits. Of an exponent of millions, a zero's too, it makes the power of ten by recursion,
and leaves its stack."""


def is_far(given: Decimal) -> bool:
    """Whether a decimal's exponent is one that would end the process. NaN and infinities have none."""
    exponent = given.as_tuple().exponent
    return isinstance(exponent, int) and abs(exponent) > FARTHEST_EXPONENT

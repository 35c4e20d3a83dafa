"""How a simulated world ends when it should not."""

from __future__ import annotations


class WorldError(Exception):
    """The world could not go on. The text tells the stack of every thread that lived."""


class Deadlock(WorldError):
    """Nobody can run, and nothing is due at any later time."""


class BusyLoop(WorldError):
    """So many steps were taken without any time passing that somebody spins."""


class TooLong(WorldError):
    """More simulated time has passed than the world was given."""


class Killed(Exception):
    """What a simulated process gives that was killed."""

"""What clients were seen to request of brokers, and what follows for the next release.

Packets and request logs become observations (`observe`; `seen_in` gives many at a time), observations are gathered by
client (`Census`), and each client is judged against a release (`judge`). Nothing in a capture stops the reading of the
rest: what is not understood is counted (`Losses`).
"""

from tagwire.capture.census import Census, Client, Offers, Usage, Use
from tagwire.capture.exchange import Exchange
from tagwire.capture.files import Piece, exchanged, exchanges_in, kind_of, observe, paths_of, pieces, seen_in
from tagwire.capture.logged import Logged
from tagwire.capture.observation import Endpoint, Losses, Observation, Place
from tagwire.capture.requests import Requests, Seen, take_census
from tagwire.capture.unseen import nothing_seen
from tagwire.capture.verdicts import Cause, Finding, Outcome, Verdict, features_of, judge

__all__ = [
    "Cause",
    "Census",
    "Client",
    "Endpoint",
    "Exchange",
    "Finding",
    "Logged",
    "Losses",
    "Observation",
    "Offers",
    "Outcome",
    "Piece",
    "Place",
    "Requests",
    "Seen",
    "Usage",
    "Use",
    "Verdict",
    "exchanged",
    "exchanges_in",
    "features_of",
    "judge",
    "kind_of",
    "nothing_seen",
    "observe",
    "paths_of",
    "pieces",
    "seen_in",
    "take_census",
]

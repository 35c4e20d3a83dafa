"""A durable broker over Kafka's log format, in a program or as a program: one node, or several for tests.

with Broker() as broker:                                  # a thread of this program; a temporary directory
    print(broker.bootstrap)
serve(Settings(data_dir=Path("/var/lib/topics")))         # this program, until a signal
"""

from typing import TYPE_CHECKING

from tagwire.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from tagwire.broker.bearer_signatures import SignedTokens
    from tagwire.broker.bearer_tokens import ClaimsCheck, UnsecuredTokens
    from tagwire.broker.cluster import Cluster, ClusterNode
    from tagwire.broker.embedded import Broker
    from tagwire.broker.foreground import serve
    from tagwire.broker.interception import Intercepted, Interception, delay, drop, hang_up
    from tagwire.broker.network.listener import Listener, Tls
    from tagwire.broker.registry import Call
    from tagwire.broker.session import HangUp
    from tagwire.broker.settings import Settings
    from tagwire.rpc import ValidatedToken

__all__ = [
    "Broker",
    "Call",
    "ClaimsCheck",
    "Cluster",
    "ClusterNode",
    "HangUp",
    "Intercepted",
    "Interception",
    "Listener",
    "Settings",
    "SignedTokens",
    "Tls",
    "UnsecuredTokens",
    "ValidatedToken",
    "delay",
    "drop",
    "hang_up",
    "serve",
]

# A broker in a program needs few of these.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "tagwire.broker.bearer_signatures": ("SignedTokens",),
            "tagwire.broker.bearer_tokens": ("ClaimsCheck", "UnsecuredTokens"),
            "tagwire.broker.cluster": ("Cluster", "ClusterNode"),
            "tagwire.broker.embedded": ("Broker",),
            "tagwire.broker.foreground": ("serve",),
            "tagwire.broker.interception": ("Intercepted", "Interception", "delay", "drop", "hang_up"),
            "tagwire.broker.network.listener": ("Listener", "Tls"),
            "tagwire.broker.registry": ("Call",),
            "tagwire.broker.session": ("HangUp",),
            "tagwire.broker.settings": ("Settings",),
            "tagwire.rpc": ("ValidatedToken",),
        },
    )

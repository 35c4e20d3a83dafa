"""A durable broker of one node over Kafka's log format, in a program or as a program.

with Broker() as broker:            # a thread of this program; a temporary directory
    print(broker.bootstrap)
serve("/var/lib/topics")            # this program, until a signal
"""

from tagwire.broker.embedded import Broker
from tagwire.broker.foreground import serve
from tagwire.broker.settings import Settings

__all__ = ["Broker", "Settings", "serve"]

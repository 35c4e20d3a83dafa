"""For those who test their own programs against the broker: interceptions, disk faults, and what was asked."""

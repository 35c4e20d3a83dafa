"""Which partition of which topic."""

TopicPartition = tuple[str, int]
"""The topic's name and the partition's number."""

"""Consumers: members of groups, and what they read."""

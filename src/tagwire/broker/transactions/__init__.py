"""Transactions: what a transactional id has written to and how that ends.

`transaction` is a state machine without IO and without a clock; `coordinator` gives it time, storage, producer ids and
the logs to mark.
"""

"""Consumer groups of the classic protocol: who is a member, who coordinates them, and which offsets they committed.

`group` is a state machine without IO and without a clock; `coordinator` gives it time, storage and responses.
"""

"""A partition on disk: its log in segments, what stands beside them, and the directory they are all in."""

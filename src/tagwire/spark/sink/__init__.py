"""Tables written to topics: batch and streaming, and streaming exactly once."""

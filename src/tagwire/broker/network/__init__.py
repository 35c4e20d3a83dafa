"""Sockets: listening, connections and their bounds, and who is let in."""

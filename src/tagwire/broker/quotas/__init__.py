"""Client quotas: what clients may take of a broker, who is over it, and how they are slowed down."""

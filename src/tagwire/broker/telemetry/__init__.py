"""What the broker tells about itself while it runs: who asks what, how much, and how it fares."""

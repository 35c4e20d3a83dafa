"""What the broker reports of itself while it runs: requests, statistics, status, log lines."""

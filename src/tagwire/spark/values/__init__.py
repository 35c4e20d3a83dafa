"""Values decoded in the workers, so that typed columns cross to Java instead of bytes."""

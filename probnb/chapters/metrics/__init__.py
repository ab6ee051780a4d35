"""The chapter on metrics."""

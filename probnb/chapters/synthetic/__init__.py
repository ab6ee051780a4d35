"""The chapter on synthetic data."""

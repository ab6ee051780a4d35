"""The chapter on ablations."""

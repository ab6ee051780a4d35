"""The chapter on theory."""

"""The chapter on real data: one notebook, three tasks that plug into it."""

"""Every table of the paper beside ours, and what the stored runs show."""

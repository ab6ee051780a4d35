"""What serves the chapter on your own images alone."""

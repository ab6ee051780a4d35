"""Every figure of the book: each one a function of data that draws on an Axes and returns it."""

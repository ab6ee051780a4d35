"""Starting from a network that has seen other images: its features, and a head on them."""

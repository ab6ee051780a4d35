"""The page on ablations: its rows, its studies, its figures."""

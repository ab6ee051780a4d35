"""What serves one chapter of the book only: its study, its sentences, its figures."""

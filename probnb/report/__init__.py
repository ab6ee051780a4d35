"""The report on anybody's predictions."""

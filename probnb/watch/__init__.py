"""Whether probabilities can still be believed: the test, and the file of outcomes."""

"""From the rows of a table to finished trainings and their numbers."""

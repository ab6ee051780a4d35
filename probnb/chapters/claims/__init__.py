"""The paper's claims, one a line, with verdicts that follow from tables and runs."""

"""The chapter of results: every table and claim of the paper beside what stored runs say."""

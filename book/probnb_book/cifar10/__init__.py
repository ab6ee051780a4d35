"""The page on judged pictures: its tasks, its study, its votes."""

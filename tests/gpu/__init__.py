"""`make gpu`: the tests that need a GPU, and what it measures; docs/gpus.md."""

"""The drill: thousands of trials that try to get something wrong into a result without a word.

`python -m tests.drill` (or `make drill`) runs it; README.md in this folder describes it.
"""

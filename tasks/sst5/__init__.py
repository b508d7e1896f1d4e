"""Sentiment in five classes: SST-5."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"text": "A fine film."} or {"tokens": [...]}',
    "output": '"label" (0 to 4), "name", "probabilities" by name',
    "official": "a label a line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, as `predict` takes them
    {"text": "A warm, funny and moving film."},
    {"text": "The jokes are old, and nothing happens for two hours."},
]

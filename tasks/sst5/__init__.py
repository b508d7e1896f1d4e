"""Sentiment in five classes: SST-5."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"text": "A fine film."} or {"tokens": [...]}',
    "output": '"label" (0 to 4), "name", "probabilities" by name',
    "official": "a label per line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {"text": "A warm, funny and moving film."},
    {"text": "The jokes are old, and nothing happens for two hours."},
]

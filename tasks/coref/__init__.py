"""Coreference: CoNLL-2012, LitBank."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"sentences": [["Ida", "sang"], ...]} or {"text": "Ida sang."}; if known "speakers", "genre"',
    "output": '"clusters" of [first word, last word], "mentions" (their words), "characters", "in_brackets"',
    "official": "CoNLL-2012 columns",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {"text": "Mary met her brother at the gate. He told her that their father had sold the old house."},
]

"""Coreference: CoNLL-2012, LitBank."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"sentences": [["Ida", "sang"], ...]} or {"text": "Ida sang."}; if known "speakers", "genre"',
    "output": '"clusters" of [first word, last word], "mentions" (their words), "characters", "in_brackets"',
    "official": "CoNLL-2012 columns",
}

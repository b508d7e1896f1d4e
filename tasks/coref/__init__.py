"""Coreference: CoNLL-2012, LitBank."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"sentences": [["Ida", "sang"], ...]} or {"text": "a sentence a line"}; if known "speakers", "genre"',
    "output": '"clusters" of [first word, last word], "mentions" (their words), "in_brackets" (sentences)',
    "plain": '{"clusters", "text"}',
}

"""Named entities: CoNLL-2003, UNER-EWT."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"tokens": ["Ida", "sang"]} or {"text": "Ida sang"}, split at white space alone',
    "output": '"tokens", "tags" (IOB2), "entities": [{"label", "start", "end", "text"}], words [start, end)',
    "plain": "a list of IOB2 tags",
}

"""Named entities: CoNLL-2003, UNER-EWT."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"tokens": ["Ida", "sang"]} or {"text": "Ida sang."}',
    "output": '"tags" (IOB2), "entities": [{"label", "start", "end", "text", "characters"}], words [start, end)',
    "official": "a word and its IOB2 tag a line",
}

"""Named entities: CoNLL-2003, UNER-EWT."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"tokens": ["Ida", "sang"]} or {"text": "Ida sang."}',
    "output": '"tags" (IOB2), "entities": [{"label", "start", "end", "text", "characters"}], words [start, end)',
    "official": "a word and its IOB2 tag a line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, as `predict` takes them
    {"text": "Anna Berg flew from Oslo to Paris."},
    {"text": "The University of Chicago invited Jordan Lee, who lives in Jordan."},
]

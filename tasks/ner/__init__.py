"""Named entities: CoNLL-2003, UNER-EWT."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"tokens": ["Ida", "sang"]} or {"text": "Ida sang."}',
    "output": '"tags" (IOB2), "entities": [{"label", "start", "end", "text", "characters"}], words [start, end)',
    "official": "a word and its IOB2 tag per line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {"text": "Anna Berg flew from Oslo to Paris."},
    {"text": "The University of Chicago invited Jordan Lee, who lives in Jordan."},
]

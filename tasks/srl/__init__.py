"""Semantic roles: CoNLL-2012, PropBank-EWT."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"tokens": ["Ida", "sang"], "predicates": [1]} or {"text": "Ida sang.", "predicates": [1]}',
    "output": '"frames": [{"predicate", "word", "arguments": [{"label", "start", "end", ...}], "brackets"}]',
    "official": "CoNLL-2012 columns",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {"text": "The teacher who read the letter gave it to her brother.", "predicates": "read, gave"},
]

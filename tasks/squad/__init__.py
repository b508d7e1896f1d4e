"""Question answering: SQuAD 1.1."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"context": "a paragraph", "question": "about it"}, if known "id"',
    "output": '"answer", "start", "end" (characters of the context), "score" (its probability), "id" if given',
    "official": "a JSON object {id: answer}",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {
        "context": "Ida Berg was born in Oslo in 1931. In 1950 she moved to Paris, where she taught music.",
        "question": "Where did she teach music?",
    },
]

"""Question answering: SQuAD 1.1."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"context": "a paragraph", "question": "about it"}, if known "id"',
    "output": '"answer", "start", "end" (characters of the context), "score" (its probability), "id" if given',
    "official": "a JSON object {id: answer}",
}

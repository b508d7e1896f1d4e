"""Question answering: SQuAD 1.1."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"context": "a paragraph", "question": "about it"}; an "id" if the output is a .json file',
    "output": '"answer", "start", "end" (characters of the context), "score" (its probability)',
    "plain": "the same without the input",
}

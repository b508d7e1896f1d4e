"""Entailment: SNLI."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"premise": "A man sings.", "hypothesis": "He is silent."}',
    "output": '"label" (entailment, neutral, contradiction), "probabilities" by label',
    "official": "a label a line",
}

"""Entailment: SNLI."""

PREDICT = {  # what `elmo-bench predict --help` says of a line of each
    "input": '{"premise": "A man sings.", "hypothesis": "He is silent."}',
    "output": '"label" (entailment, neutral, contradiction), "probabilities" by label',
    "official": "a label a line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, as `predict` takes them
    {"premise": "A man is singing on a stage.", "hypothesis": "A man is asleep."},
    {"premise": "Two girls play football in the park.", "hypothesis": "People are outdoors."},
]

"""Entailment: SNLI."""

PREDICT = {  # the lines of input and output in `elmo-bench predict --help`
    "input": '{"premise": "A man sings.", "hypothesis": "He is silent."}',
    "output": '"label" (entailment, neutral, contradiction), "probabilities" by label',
    "official": "a label per line",
}
EXAMPLES = [  # of the page `elmo-bench demo`, in the format of `predict`
    {"premise": "A man is singing on a stage.", "hypothesis": "A man is asleep."},
    {"premise": "Two girls play football in the park.", "hypothesis": "People are outdoors."},
]

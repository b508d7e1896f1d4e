"""The files of the generated data, below its folder: one for each split of a task, and the text of the biLM."""

SPLITS = ("train", "dev", "test")
PATHS = {  # of the file of each split, by task
    "ner": "ner/{}.iob2",
    "srl": "srl/{}.conll",
    "coref": "coref/{}.conll",
    "snli": "snli/{}.tsv",
    "squad": "squad/{}-v1.1.json",
    "sst": "sst/{}.txt",
}
TEXT = (*(f"lm/{split}.txt" for split in SPLITS), "lm/senses.tsv")

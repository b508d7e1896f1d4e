"""The parts of `make bench`: the biLM compared with the machine's best rate and with a reference implementation."""

PARTS = {
    "encode": "words to layers: against the best matrix product, a reference, the path without compiled functions, and "
    "beside one busy process",
    "steps": "training steps of each task at scale=open on one core, ELMo from the cache",
    "pretraining": "training a biLM, against the best matrix product",
    "growth": "how costs grow with tokens, sentence length, vocabulary, corpus and points of a sweep",
    "memory": "peak of encoding a corpus and one four times as long; of a training step of each task at scale=paper",
}

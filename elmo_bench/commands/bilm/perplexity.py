"""The perplexity of a biLM on a text: `elmo-bench perplexity options=O weights=W text=FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.terminal.command import Argument, Command

COMMAND = Command(
    (
        Argument("options", "the biLM's options, in the official layout", value="FILE.json"),
        Argument("weights", "its weights; softmax.safetensors and vocabulary.txt lie beside them", value="FILE.hdf5"),
        Argument("text", "one tokenized sentence a line; a file, a folder of files or a quoted pattern", value="TEXT"),
    ),
    (("options=models/open/options.json weights=models/open/weights.hdf5 text=text.txt.xz", ""),),
    (
        "Prints a JSON object: the perplexity forward (given the words before), backward (given those after) and their "
        "mean, as the paper quotes it; how many predictions each direction made, ends of sentences included; the size "
        "of the vocabulary and how many words of the text it lacks. These count as the one word <UNK>, so that figures "
        "compare only for one vocabulary and one text.",
        "The state runs on from sentence to sentence, as in training. A long text is read in 32 equal parts; up to 31 "
        "predictions at its end are left out.",
        "The official files have no softmax; `elmo-bench tune` trains one.",
    ),
    page="bilms",
)


def measure(options: Path, weights: Path, text: str) -> dict[str, Any]:
    """What the command prints.

    Raises:
        UserError: no softmax beside the weights, a missing or damaged file, a text without sentences, a perplexity that
            is not finite.
    """
    from elmo_bench.bilm.corpus import Corpus, sources
    from elmo_bench.bilm.lm import has_softmax, read_lm

    if not has_softmax(weights.parent):
        raise UserError(
            "no softmax.safetensors and vocabulary.txt beside these weights, which a perplexity needs; the official "
            "files have none, and `elmo-bench tune` trains one",
            weights,
        )
    lm, words = read_lm(options, weights)
    corpus = Corpus.read(sources(Path(), [(text, None)]))
    measured = lm.perplexity(corpus, words, name=text)
    predictions = measured.pop("tokens")
    del measured["pieces"]
    running, distinct = corpus.unknown(words)
    return {
        **measured,
        "predictions": predictions,
        "vocabulary": len(words),
        "sentences": len(corpus.ends),
        "words": len(corpus.tokens),
        "unknown_words": running,
        "distinct_unknown_words": distinct,
    }


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    print(json_text.dumps(measure(Path(given["options"]), Path(given["weights"]), given["text"]), indent=1))

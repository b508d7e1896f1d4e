"""The perplexity of a biLM on a text: `elmo-bench perplexity text=FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmo_bench.commands.command import Argument, Command
from elmo_bench.commands.usage import BILM_FILES, bilm_files
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text

COMMAND = Command(
    (
        *BILM_FILES,
        Argument("text", "one tokenized sentence a line; a file, a folder of files or a quoted pattern", value="TEXT"),
    ),
    (
        ("text=text.txt.xz", "of the open biLM"),
        ("bilm=own/biLM text=text.txt", "of that of a folder"),
    ),
    (
        "Prints a JSON object: the perplexity forward (given the words before), backward (given those after) and their "
        "mean, as the paper quotes it; how many predictions each direction made, ends of sentences included; the size "
        "of the vocabulary and how many words of the text it lacks. These count as the one word <UNK>, so that figures "
        "compare only for one vocabulary and one text.",
        "The state runs on from sentence to sentence, as in training. A long text is read in 32 equal parts; up to 31 "
        "predictions at its end are left out.",
        "Beside the weights lie softmax.safetensors and vocabulary.txt. The official files have no softmax; "
        "`elmo-bench tune` trains one.",
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
    predictions, running = measured.pop("tokens"), measured.pop("unknown_words")
    del measured["pieces"]
    return {
        **measured,
        "predictions": predictions,
        "vocabulary": len(words),
        "sentences": len(corpus.ends),
        "words": len(corpus.tokens),
        "unknown_words": running,
        "distinct_unknown_words": corpus.unknown(words)[1],
    }


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    print(json_text.dumps(measure(*bilm_files(given), given["text"]), indent=1))

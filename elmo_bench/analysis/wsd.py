"""The paper's Table 5."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import them
    from elmo_bench.analysis.corpora.senses import Sentence
    from elmo_bench.analysis.disambiguation import Counts
    from elmo_bench.analysis.settings import WsdConfig
    from elmo_bench.analysis.study import Study

HEADER = ["method", "F1", "95 % interval", "precision", "recall", "attempted", "the paper"]
NOTE = (
    "Fine-grained F1 in percent over {instances} instances in {sentences} sentences: precision over the attempted "
    "instances, recall over all; any of several gold keys is right. An instance has the sense whose mean over {train} "
    "training sentences is nearest by cosine, or its first sense if these lack the word. Intervals from {draws} "
    "resamples of the sentences. {verdict} {scale}"
)


def load(settings: WsdConfig) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences of train and test. Raises `UserError` for malformed files, or a file without senses."""
    loaded = [_sentences(settings, split) for split in ("train", "test")]
    for split, sentences in zip(("train", "test"), loaded, strict=True):
        if not any(sentence.instances for sentence in sentences):
            raise UserError("holds no word with a sense", getattr(settings, split))
    return loaded[0], loaded[1]


def _sentences(settings: WsdConfig, split: str) -> list[Sentence]:
    from elmo_bench.analysis.corpora import senses as corpora

    path, senses = getattr(settings, split), getattr(settings, f"{split}_senses")
    if path is None or (settings.format != "columns" and senses is None):
        raise UserError(f"format={settings.format} needs {split}=FILE and {split}_senses=FILE")
    if settings.format == "columns":
        return list(islice(corpora.read_columns(Path(path)), settings.sentences))
    read = corpora.read_xml if settings.format == "xml" else corpora.read_mini
    return read(Path(path), Path(senses))[: settings.sentences]


def measure(study: Study[WsdConfig]) -> dict[str, Any]:
    """The table: title, note, header and rows, and the measured numbers."""
    from elmo_bench.analysis.disambiguation import disambiguate, first_sense

    train, test = load(study.settings)
    first = _first(study.settings, train, test)
    counts = {"first sense": first_sense(test, first)}
    for name, source in study.open(cached=False).items():
        layers = disambiguate(source, train, test, first)
        counts |= {f"{name}, layer {number}": each for number, each in enumerate(layers)}
    return _page(study, counts, len(train))


def _first(settings: WsdConfig, train: list[Sentence], test: list[Sentence]) -> dict[tuple[str, str], str]:
    """The first senses: of the inventory, whose keys are then required, or of the training text."""
    from elmo_bench.analysis.corpora import inventory

    if settings.inventory is None:
        return inventory.first_senses(train)
    path = Path(settings.inventory)
    numbers = inventory.read_index(path)
    for split, sentences in (("train", train), ("test", test)):
        gold = getattr(settings, f"{split}_senses") or getattr(settings, split)
        inventory.check_keys(sentences, numbers, path, Path(gold))
    return inventory.first_of_index(numbers)


def _page(study: Study[WsdConfig], counts: dict[str, Counts], train: int) -> dict[str, Any]:
    settings, run = study.settings, study.run
    measured = {name: _scores(each, settings) for name, each in counts.items()}
    table = counts["first sense"].table
    note = NOTE.format(
        instances=int(table[:, 2].sum()), sentences=int((table[:, 2] > 0).sum()), train=train, draws=settings.draws,
        verdict=_verdict(study, counts), scale=run.scale.note,
    )  # fmt: skip
    paper = _paper(study, list(counts))
    rows = [[name, *_cells(scores), paper.get(name, "")] for name, scores in measured.items()]
    title = f"Table 5: word senses, scale {run.scale.name}, biLM {run.bilm.name}"
    return {"title": title, "note": note.strip(), "header": HEADER, "rows": rows, "measured": measured}


def _scores(counts: Counts, settings: WsdConfig) -> dict[str, Any]:
    from elmo_bench.analysis.disambiguation import f1
    from elmo_bench.analysis.resampling import interval

    return counts.scores | {"interval": interval(counts.table, f1, settings.draws, settings.seed)}


def _cells(scores: dict[str, Any]) -> list[str]:
    low, high = scores["interval"]
    shown = [f"{scores[name]:.1f}" for name in ("precision", "recall", "attempted")]
    return [f"{scores['f1']:.2f}", f"{low:.1f} to {high:.1f}", *shown]


def _paper(study: Study[WsdConfig], names: list[str]) -> dict[str, str]:
    """The paper's figures by our rows; those of its biLM stand beside the first biLM alone."""
    given, ours = study.settings.paper or {}, f"{study.run.bilm.name}, " if study.of_bilm else ""
    return {name: str(given[name.removeprefix(ours)]) for name in names if name.removeprefix(ours) in given}


def _verdict(study: Study[WsdConfig], counts: dict[str, Counts]) -> str:
    """Whether the top layer or layer 1 is better; of another source than a biLM, the best layer."""
    import numpy as np

    from elmo_bench.analysis.disambiguation import f1
    from elmo_bench.analysis.resampling import best, interval, verdict

    layers = [each for name, each in counts.items() if name.startswith(f"{study.run.bilm.name}, ")]
    if not study.of_bilm:
        return best("senses", [each.scores["f1"] for each in layers])
    if len(layers) < 3:
        return ""

    def difference(sums: np.ndarray) -> np.ndarray:
        return f1(sums[:, 3:]) - f1(sums[:, :3])

    both = np.concatenate([layers[1].table, layers[-1].table], axis=1)  # (S, 6)
    low, high = interval(both, difference, study.settings.draws, study.settings.seed)
    gain = difference(both.sum(axis=0)[None])[0].item()
    return verdict("senses", gain, low, high, len(layers) - 1, "layer 2")

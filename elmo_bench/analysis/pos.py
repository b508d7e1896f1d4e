"""The paper's Table 6."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `--help` does not import them
    import numpy as np
    from torch import Tensor

    from elmo_bench.analysis.settings import PosConfig
    from elmo_bench.analysis.study import Study
    from elmo_bench.analysis.tagged import Tagged

NOTE = (
    "Accuracy in percent on {words} words of test: a linear classifier on the vectors of one layer, trained on {train} "
    "words, the epoch of best dev accuracy; mean ± standard deviation over {seeds} seeds. {remark}{verdicts} {scale}"
)
NO_VECTORS = "The control {name} is left out: its files are not here (get them: {download}). "
SPLITS = ("train", "dev", "test")


def measure(study: Study[PosConfig]) -> dict[str, Any]:
    """The table: title, note, header and rows, and the measured numbers."""
    from pathlib import Path

    from elmo_bench.analysis import tagged

    splits = [tagged.read(Path(getattr(study.settings, split)), study.settings) for split in SPLITS]
    right: dict[str, dict[str, np.ndarray]] = {}  # by row and tag set: (seeds, sentences of test) right answers
    for name, vectors in _vectors(study, splits):
        right[name] = {tags: _right(study.settings, splits, tags, vectors) for tags in study.settings.tags}
    return _page(study, splits, right)


def _vectors(study: Study[PosConfig], splits: list[Tagged]) -> Iterator[tuple[str, list[Tensor]]]:
    """Each row of the table, and its vectors (N, W) for the words of every split."""
    from elmo_bench.analysis.probe import layer
    from elmo_bench.layers.cache import ActivationCache

    if study.settings.vectors and (static := _static(study, splits)):
        yield study.settings.vectors, static
    for name, source in study.open(cached=True).items():
        if isinstance(source, ActivationCache):
            source.prepare([sentence for split in splits for sentence in split.sentences])
        for number in range(source.n_layers):
            yield f"{name}, layer {number}", [layer(source, split.sentences, number) for split in splits]


def _static(study: Study[PosConfig], splits: list[Tagged]) -> list[Tensor] | None:
    """Static word vectors, zero for words that the table lacks; None if its files are not here."""
    import torch

    from elmo_bench.embedding.vectors import Lookup, find

    block, table = study.vectors or (None, None)
    if block is None or table is None:
        return None
    words = {word for split in splits for sentence in split.sentences for word in sentence}
    found = find(table, words, block.size, Lookup(block.cased, "lower"))
    zero = torch.zeros(block.size)
    return [torch.stack([found.get(w, zero) for s in split.sentences for w in s]).half() for split in splits]


def _right(settings: PosConfig, splits: list[Tagged], tags: str, vectors: list[Tensor]) -> np.ndarray:
    """How many words of each sentence of test are right, for every seed: (seeds, sentences)."""
    import numpy as np

    from elmo_bench.analysis import probe

    numbers, known = probe.numbered([split.tags[tags] for split in splits])
    train, dev, test = map(probe.Split, vectors, numbers)
    found = []
    for seed in range(1, settings.seeds + 1):
        answers = probe.train(train, dev, known, settings, seed)(test.x)
        found.append([int(each.sum()) for each in (answers == test.y).split(splits[2].lengths)])
    return np.array(found)


def _page(study: Study[PosConfig], splits: list[Tagged], right: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    run, settings, words = study.run, study.settings, sum(splits[2].lengths)
    measured = {
        name: {tags: (100 * each.sum(axis=1) / words).round(4).tolist() for tags, each in by_tags.items()}
        for name, by_tags in right.items()
    }
    verdicts = [_verdict(study, tags, right, splits[2].lengths) for tags in settings.tags]
    note = NOTE.format(
        words=words, train=sum(splits[0].lengths), seeds=settings.seeds, remark=_remark(study),
        verdicts=" ".join(filter(None, verdicts)), scale=run.scale.note,
    )  # fmt: skip
    header = ["vectors", *settings.tags, "the paper (PTB)"]
    rows = [[name, *map(_shown, scores.values()), _paper(study, name)] for name, scores in measured.items()]
    title = f"Table 6: parts of speech, scale {run.scale.name}, biLM {run.bilm.name}"
    return {"title": title, "note": note.strip(), "header": header, "rows": rows, "measured": measured}


def _shown(values: list[float]) -> str:
    from elmo_bench.records.store import mean_and_deviation

    mean, deviation = mean_and_deviation(values)
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _paper(study: Study[PosConfig], name: str) -> str:
    """The paper's figure for a layer of the biLM; nothing for a control, or for another source."""
    figures = study.settings.paper if study.of_bilm else None
    return str((figures or {}).get(name.removeprefix(f"{study.run.bilm.name}, "), ""))


def _remark(study: Study[PosConfig]) -> str:
    block, table = study.vectors or (None, None)
    return NO_VECTORS.format(name=block.name, download=block.download) if block and not table else ""


def _verdict(study: Study[PosConfig], tags: str, right: dict[str, dict[str, np.ndarray]], lengths: list[int]) -> str:
    """Whether the top layer or layer 1 is better at a tag set, over the sentences and the mean of the seeds; of another
    source than a biLM, the best layer."""
    import numpy as np

    from elmo_bench.analysis.resampling import best, interval, verdict

    layers = [each[tags] for name, each in right.items() if name.startswith(f"{study.run.bilm.name}, ")]
    if not study.of_bilm:
        return best(f"parts of speech ({tags})", [each.sum() for each in layers])
    if len(layers) < 3:
        return ""
    gains = (layers[-1] - layers[1]).mean(axis=0)  # (sentences of test,)
    counts = np.stack([gains, lengths], axis=1)

    def share(sums: np.ndarray) -> np.ndarray:
        return 100 * sums[:, 0] / sums[:, 1]

    low, high = interval(counts, share, study.settings.draws)
    gain = share(counts.sum(axis=0)[None])[0].item()
    return verdict(f"parts of speech ({tags})", gain, low, high, len(layers) - 1, "layer 1")

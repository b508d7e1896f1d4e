"""How well the layers of a biLM separate the senses of a word, after section 5.3 of the paper.

The text is held-out generated text with known senses. For every occurrence of a form with two senses, and for each
layer, the nearest other occurrence of the form by cosine is looked up: does it have the same sense? Layer 0 depends on
the characters only, so all occurrences are equally near and accuracy is at chance. Writes figures/senses-<biLM>.json
and .png under results.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.configuration.schema import RunConfig
from elmo_bench.identity.makers import Makers
from elmo_bench.layers.build import open_source
from elmo_bench.layers.source import LayersSource
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_bytes, write_text
from elmo_bench.system.storage.integrity import sealed

SPLITS = ("dev", "test")  # the biLM was not trained on them
LEAST = 4  # occurrences of each sense that a form must have
SHOWN = 4  # number of forms in the picture
TITLE = "Senses of ambiguous words, scale mini, biLM {name}"
NOTE = (
    "1-nearest-neighbour accuracy over the occurrences of a form with two senses in held-out generated text, leaving "
    "one out, by cosine in one layer; mean over the senses, then over the forms. Layer 0 depends on the characters "
    "alone: it is the same for all occurrences, so its neighbour is a random one, as in the column chance."
)


class Form(NamedTuple):
    """A word form, its occurrences (sentence, token) and the sense of each."""

    form: str
    places: list[tuple[int, int]]
    senses: list[str]


def read(folder: Path) -> tuple[list[list[str]], list[Form]]:
    """The held-out sentences of a mini data set, and the forms with two senses in them, the most frequent first.

    Raises:
        UserError: a file is missing.
    """
    sentences: list[list[str]] = []
    first: dict[str, int] = {}
    for split in SPLITS:
        first[split] = len(sentences)
        sentences += [line.split() for line in _lines(folder / "lm" / f"{split}.txt")]
    occurrences: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for line in _lines(folder / "lm" / "senses.tsv")[1:]:
        split, sentence, token, _, sense = line.split("\t")
        if split in first:
            place = first[split] + int(sentence), int(token)
            occurrences.setdefault(sentences[place[0]][place[1]], []).append((place, sense))
    forms = [Form(form, *map(list, zip(*places, strict=True))) for form, places in occurrences.items()]  # type: ignore[arg-type]
    forms = [one for one in forms if len(set(one.senses)) == 2 and _rarest(one) >= LEAST]
    return sentences, sorted(forms, key=lambda one: (-_rarest(one), one.form))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); the figure needs a mini data set", path) from None


def _rarest(form: Form) -> int:
    return min(form.senses.count(sense) for sense in set(form.senses))


def vectors(source: LayersSource, sentences: Sequence[list[str]], forms: Sequence[Form]) -> list[Tensor]:
    """The layers of every occurrence: a tensor (n, n_layers, W) for each form."""
    needed = sorted({sentence for form in forms for sentence, _ in form.places})
    layers: dict[int, Tensor] = {}  # (n_layers, T, W) of a sentence
    for indices, flat in source.batches([sentences[i] for i in needed]):
        numbers = [needed[i] for i in indices]
        layers |= zip(numbers, flat.split([len(sentences[i]) for i in numbers], dim=1), strict=True)
    return [torch.stack([layers[i][:, token] for i, token in form.places]) for form in forms]


def accuracy(x: Tensor, senses: Sequence[str]) -> float:
    """How often the nearest other occurrence by cosine has the same sense, mean over senses; ties count in equal parts.

    Args:
        x: (n, D), one row per occurrence.
        senses: of each occurrence.
    """
    x = F.normalize(x.double(), dim=-1)
    near = (x @ x.T).fill_diagonal_(-2)  # (n, n)
    nearest = (near >= near.max(dim=1, keepdim=True).values - 1e-9).double()
    same = torch.tensor([[a == b for b in senses] for a in senses], dtype=torch.double)  # (n, n)
    right = (nearest * same).sum(1) / nearest.sum(1)  # (n,)
    return _over_senses(right, senses)


def chance(senses: Sequence[str]) -> float:
    """How often a random other occurrence has the same sense, mean over senses."""
    return accuracy(torch.ones(len(senses), 1), senses)


def _over_senses(right: Tensor, senses: Sequence[str]) -> float:
    means = [right[[i for i, s in enumerate(senses) if s == sense]].mean() for sense in sorted(set(senses))]
    return float(torch.stack(means).mean())


def measure(forms: Sequence[Form], layers: Sequence[Tensor]) -> dict[str, Any]:
    """Accuracies in percent, of chance and of each layer, for each form and over all forms."""
    rows = []
    for form, x in zip(forms, layers, strict=True):
        by_layer = [round(100 * accuracy(x[:, layer], form.senses), 2) for layer in range(x.shape[1])]
        counts = {sense: form.senses.count(sense) for sense in sorted(set(form.senses))}
        rows.append(
            {"form": form.form, "senses": counts, "chance": round(100 * chance(form.senses), 2), "layers": by_layer}
        )
    columns = zip(*(row["layers"] for row in rows), strict=True)
    mean = {
        "chance": round(sum(row["chance"] for row in rows) / len(rows), 2),
        "layers": [round(sum(column) / len(rows), 2) for column in columns],
    }
    return {"mean": mean, "forms": rows}


def table(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Header and rows for the report."""
    layers = range(len(measured["mean"]["layers"]))
    header = ["form", "occurrences of each sense", "chance", *(f"layer {layer}" for layer in layers)]
    rows = [["all", f"{len(measured['forms'])} forms", *_cells(measured["mean"])]]
    for row in measured["forms"]:
        counts = ", ".join(f"{sense.partition('%')[2]} {n}" for sense, n in row["senses"].items())
        rows.append([row["form"], counts, *_cells(row)])
    return {"header": header, "rows": rows}


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [f"{value:.1f}" for value in (row["chance"], *row["layers"])]


def draw(path: Path, forms: Sequence[Form], layers: Sequence[Tensor]) -> None:
    """Plots the occurrences of the first forms in the plane of each layer's two largest principal components."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = list(zip(forms, layers, strict=True))[:SHOWN]
    depth = shown[0][1].shape[1]
    figure = Figure(figsize=(3.2 * depth, 2.6 * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(shown), depth, squeeze=False)
    for row, (form, x) in zip(axes, shown, strict=True):
        for layer, ax in enumerate(row):
            points = plane(x[:, layer])
            for sense, marker in zip(sorted(set(form.senses)), "o^", strict=True):
                chosen = points[[i for i, s in enumerate(form.senses) if s == sense]]
                ax.scatter(chosen[:, 0], chosen[:, 1], marker=marker, s=22, alpha=0.7, label=sense.partition("%")[2])
            ax.set(xticks=[], yticks=[])
            ax.set_title(f"{form.form}, layer {layer}: {100 * accuracy(x[:, layer], form.senses):.0f} %", fontsize=9)
        row[0].legend(fontsize=8)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, metadata={"Software": None})
    write_bytes(path, picture.getvalue())


def plane(x: Tensor) -> Tensor:
    """(n, D) -> (n, 2): the two largest principal components; zeros if all rows are the same."""
    x = x.double()
    x = x - x.mean(dim=0)
    if x.abs().max() < 1e-6:
        return torch.zeros(len(x), 2)
    _, _, v = torch.linalg.svd(x, full_matrices=False)
    v = (
        v[:2] * v[:2].gather(1, v[:2].abs().argmax(dim=1, keepdim=True)).sign()
    )  # fixes the arbitrary sign of a component
    return x @ v.T


def run(config: RunConfig) -> Path:
    """Measures, draws and writes; returns the JSON file.

    Args:
        run: names the mini data set (`scale`) and the biLM.

    Raises:
        UserError: no biLM, or no mini data set.
    """
    Makers.of(config).make()
    if config.scale.folder is None:
        raise UserError(f"scale={config.scale.name} has no text with known senses; the figure is for scale=mini")
    sentences, forms = read(Path(config.scale.folder))
    if not forms:
        raise UserError(f"no form occurs {LEAST} times in each of two senses; generate more held-out text (sizes.lm)")
    source: Any = open_source(config.bilm)
    layers = vectors(source, sentences, forms)
    measured = measure(forms, layers)
    name = f"senses-{config.bilm.name}"
    folder = Path(config.results_root) / "figures"
    draw(folder / f"{name}.png", forms, layers)
    page = {
        "title": TITLE.format(name=config.bilm.name),
        "note": NOTE,
        "picture": f"{name}.png",
        **table(measured),
        "bilm": {"name": config.bilm.name, "sha256": source.sha256},
        "measured": measured,
    }
    write_text(folder / f"{name}.json", sealed(json.dumps(page, indent=1, ensure_ascii=False) + "\n"))
    return folder / f"{name}.json"

"""The local page of `elmo-bench demo`, for trying the trained heads and the biLM's vectors."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from elmo_bench.system import code
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:
    from elmo_bench.bilm import BiLM
    from elmo_bench.trained.opened import Trained

LOCAL = "127.0.0.1"
COLOURS = ("#cfe3ff", "#ffe0bd", "#cdeccd", "#f3cfe6", "#fff2ae", "#ddd6f7", "#c9ecec", "#f6cccc")
T = TypeVar("T")
Span = tuple[int, int, str]  # characters [start, end) of a text, and their label


def packages() -> Iterator[tuple[str, ModuleType]]:
    """Each task with the package of its reader."""
    from omegaconf import OmegaConf

    from elmo_bench.configuration import pages

    for task in pages.tasks():
        reader = OmegaConf.select(pages.read(pages.page(task)), "task.reader._target_") or ""
        if package := ".".join(reader.split(".")[:-2]):
            yield task, importlib.import_module(code.located(package))


def cosines(bilm: BiLM, sentences: Sequence[Sequence[str]], places: Sequence[int]) -> list[tuple[float, float, float]]:
    """For each layer, the cosine of two words' vectors, of their forward halves and of their backward halves."""
    import torch
    from torch.nn import functional as F

    first, second = (
        layers[:, place].double() for layers, place in zip(bilm.encode(sentences), places, strict=True)
    )  # (L+1, 2P)
    half = first.shape[1] // 2
    parts = [slice(None), slice(half), slice(half, None)]
    columns = [F.cosine_similarity(first[:, part], second[:, part], dim=-1) for part in parts]
    return [
        (whole, forward, backward) for whole, forward, backward in torch.stack(columns, dim=1).clamp(-1, 1).tolist()
    ]


def place(word: str, sentence: Sequence[str], number: int, name: str) -> int:
    """The position of an occurrence of a word, counted from 1, in the sentence that an argument gave."""
    found = [i for i, one in enumerate(sentence) if one == word]
    if not found:
        raise UserError(f"word={word} does not occur in {name}='{' '.join(sentence)}'; separate words by spaces")
    if number > len(found):
        raise UserError(f"{name}_at={number}: {word} occurs {len(found)} times in {name}='{' '.join(sentence)}'")
    return found[number - 1]


def examples() -> dict[str, list[dict[str, Any]]]:
    """Example inputs, by task: `EXAMPLES` of its package, JSON objects for `predict`."""
    from elmo_bench.configuration.pages import in_order

    found = {task: rows for task, package in packages() if (rows := getattr(package, "EXAMPLES", []))}
    return {task: found[task] for task in in_order(found)}


# The answer, marked in the text.


def marks(raw: Mapping[str, str], answer: Mapping[str, Any]) -> Iterator[tuple[str, list[Span]]]:
    """The texts that show an answer, with their spans: entities, a frame of each verb, clusters, or an answer."""
    text = raw.get("text", "")
    entities = [answer["entities"]] if "entities" in answer else []
    for found in (*entities, *(frame["arguments"] for frame in answer.get("frames", []))):
        yield text, [(*each["characters"], each["label"]) for each in found]
    if "clusters" in answer:
        yield text, [(*span, str(i + 1)) for i, cluster in enumerate(answer["characters"]) for span in cluster]
    if "answer" in answer:
        yield raw["context"], [(answer["start"], answer["end"], "answer")]


def marked(text: str, spans: Sequence[Span]) -> str:
    """A text as HTML, each span in the colour of its label; nested spans have the inner colour."""
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(dict.fromkeys(label for *_, label in spans))}
    cuts = sorted({0, len(text), *(edge for start, end, _ in spans for edge in (start, end))})
    parts = []
    for start, end in pairwise(cuts):
        around = sorted((e - s, label) for s, e, label in spans if s <= start and end <= e)
        piece = escape(text[start:end])
        if around:
            piece = f'<mark style="background: {colours[around[0][1]]}; color: #111; padding: 2px 0">{piece}</mark>'
        ended = "".join(f"<sub><b>{escape(label)}</b></sub>" for _, e, label in spans if e == end)
        parts.append(piece + ended)
    return f'<p style="line-height: 2; white-space: pre-wrap">{"".join(parts)}</p>'


def bars(values: Mapping[str, float], title: str) -> str:
    """Numbers from 0 to 1 as HTML bars, in their order; empty without numbers."""
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td>{value:.2f}</td><td style="width: 70%"><div style="height: 12px; '
        f'background: #0072b2; width: {100 * max(value, 0):.0f}%"></div></td></tr>'
        for name, value in values.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>" if values else ""


# One task, and the vectors.


@cache
def head(what: str) -> Trained:
    """A trained head by its task or checkpoint, opened once."""
    from elmo_bench.trained.prediction import load

    return load(what)


def answered(what: str, raw: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The answer for the typed input, as HTML (text with its spans, probabilities, layer weights), and as JSON."""
    trained = head(what)
    answer = trained.predict([{key: value for key, value in raw.items() if value.strip()}])[0]["prediction"]
    scores = answer.get("probabilities") or ({answer["answer"]: answer["score"]} if "answer" in answer else {})
    parts = [*(marked(*each) for each in marks(raw, answer)), bars(scores, "Probabilities"),
             bars(weights(trained), "Weights s_j of the biLM's layers")]  # fmt: skip
    return "".join(parts), answer


def weights(trained: Trained) -> dict[str, float]:
    """s_j of equation (1) at each place where ELMo enters the model, by layer; empty for a baseline."""
    mixes = getattr(trained.model.representation.elmo, "mixes", {})
    return {f"{where}, layer {j}": float(s) for where, mix in mixes.items() for j, s in enumerate(mix.s)}


@cache
def opened(bilm: str) -> BiLM:
    """A biLM by its name or folder, opened once."""
    from elmo_bench.bilm import BiLM

    return BiLM.open(bilm)


def compared(bilm: str, word: str, first: str, second: str) -> str:
    """The cosine of a word's vectors in two sentences, by layer, as HTML. Raises `UserError` if one lacks it."""
    from elmo_bench.text import tokenizer

    sentences = [[each.form for each in tokenizer.words(text)] for text in (first, second)]
    at = [place(word.strip(), words, 1, name) for words, name in zip(sentences, ("first", "second"), strict=True)]
    layers = {f"layer {j}": both for j, (both, _, _) in enumerate(cosines(opened(bilm), sentences, at))}
    return bars(layers, f"Cosine of the two vectors of {word.strip()}")


# The page.


def page(heads: Mapping[str, str], bilm: str) -> Any:
    """The page as a `gradio.Blocks`.

    Args:
        heads: arguments of `head`, by the name of the task.
        bilm: the argument of `opened`.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    try:
        import gradio
    except ImportError as error:
        raise UserError("demo needs an extra: pip install -c constraints.txt -e '.[demo]'") from error

    with gradio.Blocks(title="elmo_bench") as blocks:
        gradio.Markdown("# elmo_bench\nTrained heads on a small biLM: they show what the code does.")
        for task, rows in examples().items():
            with gradio.Tab(task):
                _tab(gradio, task, heads.get(task, task), rows)
        with gradio.Tab("vectors"):
            _vectors(gradio, bilm)
    return blocks


def _tab(gradio: Any, task: str, what: str, rows: Sequence[Mapping[str, str]]) -> None:
    keys = list(rows[0])
    with gradio.Row():
        with gradio.Column():
            boxes = [
                gradio.Textbox(rows[0][key], label=key, lines=3 if key in ("text", "context") else 1) for key in keys
            ]
            button = gradio.Button("Predict", variant="primary")
            if len(rows) > 1:
                gradio.Examples([[row[key] for key in keys] for row in rows], boxes)
        with gradio.Column():
            shown = gradio.HTML()
            with gradio.Accordion("the whole answer", open=False):
                whole_answer = gradio.JSON()

    def predict(*typed: str) -> tuple[str, dict[str, Any]]:
        return _result(gradio, answered, what, dict(zip(keys, typed, strict=True)))

    gradio.on([button.click, *(box.submit for box in boxes)], predict, boxes, [shown, whole_answer], api_name=task)


def _vectors(gradio: Any, bilm: str) -> None:
    gradio.Markdown("The cosine of a word's vectors in two sentences. Layer 0 reads the word's characters alone.")
    word = gradio.Textbox("play", label="word")
    first = gradio.Textbox("They play chess every day.", label="first sentence")
    second = gradio.Textbox("We saw a play by Ibsen.", label="second sentence")
    button, shown = gradio.Button("Compare", variant="primary"), gradio.HTML()
    typed = [word, first, second]

    def compare(*given: str) -> str:
        return _result(gradio, compared, bilm, *given)

    gradio.on([button.click, *(box.submit for box in typed)], compare, typed, shown, api_name="vectors")


def _result(gradio: Any, function: Callable[..., T], *given: Any) -> T:
    """The result of a function; an error that the user can correct is shown on the page."""
    try:
        return function(*given)
    except UserError as error:
        raise gradio.Error(str(error), print_exception=False) from None


def launch(checkpoint: str | None, bilm: str, port: int, public: bool) -> None:
    """Opens the page until a signal ends it; the arguments are those of the command."""
    heads = {head(checkpoint).task: checkpoint} if checkpoint else {}
    blocks = page(heads, bilm)
    print(f"http://{LOCAL}:{port}; Ctrl+C ends it", flush=True)
    blocks.launch(server_name="0.0.0.0" if public else LOCAL, server_port=port, share=False, quiet=True)

"""Table 7 of the paper: perplexity on the text of each task's development set, before and after tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.bilm.card import read_card
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.integrity import sealed
from elmo_bench.tuning.text import DEV

if TYPE_CHECKING:
    from rich.console import Console

TITLE = "Table 7, scale {scale}: perplexity of dev before and after tuning"
NOTE = (
    "Full-softmax perplexity of the distinct sentences of dev, given the words before (forward) or after (backward), "
    "and the mean of the two. Words outside the vocabulary count as <UNK>; unknown is their share of dev. After: one "
    "pass over the training sentences without those of dev and test. Only the figures of one row compare: vocabulary "
    "and text differ from task to task. The paper's are means of the two directions; of SQuAD, those of the contexts."
)
BEFORE = "before: forward, backward: mean"
HEADER = ("task", "biLM", "words read", "vocabulary", "unknown", BEFORE, "after", "the paper")


def write(runs: Sequence[RunConfig]) -> Path:
    """Writes analysis/<scale>/tuning/table7.json below the results, a row for each task; rows of other tasks stay.

    Args:
        runs: of one scale, whose biLMs have been tuned.

    Raises:
        UserError: a card is damaged, or the file that is there.
    """
    first = runs[0]
    path = Path(first.results_root) / "analysis" / first.scale.name / "tuning" / "table7.json"
    rows = {(cells[0], cells[1]): cells for cells in [*_earlier(path), *map(row, runs)]}  # by task and biLM
    page = {
        "title": TITLE.format(scale=first.scale.name),
        "note": NOTE,
        "header": list(HEADER),
        "rows": [rows[name] for name in sorted(rows)],
    }
    write_text(path, sealed(json_text.dumps(page, indent=1, ensure_ascii=False) + "\n"))
    return path


def row(run: RunConfig) -> list[str]:
    """The cells of a task, from the card of its tuned biLM."""
    card = read_card(Path(run.bilm.tuning.folder))
    text = card["text"]
    unknown = text["dev"]["unknown"] / text["dev"]["words"]
    names, sizes = [run.task.name, card["parent"]["name"]], [text["train"]["words"], text["vocabulary"]]
    measured = map(_perplexities, (card["before"], card["perplexity"]))
    return [*names, *(f"{size:,}" for size in sizes), f"{unknown:.1%}", *measured, _paper(run)]


def show(path: Path, console: Console) -> None:
    """Prints a table that `write` wrote."""
    from rich.table import Table

    page = json_text.read(path)
    table = Table(*page["header"], title=page["title"])
    for cells in page["rows"]:
        table.add_row(*cells)
    console.print(table)
    console.print(f"written: {path}", soft_wrap=True)


def _earlier(path: Path) -> list[list[str]]:
    return json_text.read(path)["rows"] if path.is_file() else []


def _perplexities(by_text: Mapping[str, Any]) -> str:
    measured = by_text[DEV]
    return f"{measured['forward']:.1f}, {measured['backward']:.1f}: {measured['mean']:.1f}"


def _paper(run: RunConfig) -> str:
    """The paper's figures, as on the task's page."""
    if not run.task.perplexity:
        return ""
    before, after = run.task.perplexity["before"], run.task.perplexity["after"]
    return f"{before} → {'not tuned' if after is None else after}"

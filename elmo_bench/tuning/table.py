"""Table 7 of the paper: perplexity on the text of each task's development set, before and after tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elmo_bench.bilm.card import read_card
from elmo_bench.configuration.composing import variant
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.records import store, studies
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.gains import settings_text
from elmo_bench.reporting.intervals import Spread
from elmo_bench.system.errors import UserError
from elmo_bench.tuning.tuned import DEV

WHAT = "perplexity of dev before and after tuning"
NOTE = (
    "Full-softmax perplexity of the distinct sentences of dev, given the words before (forward) or after (backward), "
    "and the mean of the two. Words outside the vocabulary count as <UNK>; unknown is their share of dev. After: one "
    "pass over the training sentences without those of dev and test. Only the figures of one row compare: vocabulary "
    "and text differ from task to task. The 95 % interval is that of the jackknife over up to 32 equal pieces of dev; "
    "it says nothing of other seeds. The paper's are means of the two directions; of SQuAD, those of the contexts; "
    "those of SRL and coreference are of the biLM that was not tuned."
)
LOWERED = "lowered, %"
TEXT = "text"  # a key of the settings: a digest, as files of other texts may have the same names


def write(runs: Sequence[RunConfig]) -> StudyRecord:
    """Writes the study `tuning` of a scale and a biLM below the results; its rows of other tasks stay.

    Tunings on other text or with other settings than the scale's are a separate study, whose title names them.

    Args:
        runs: runs of one scale and parent, whose biLMs have been tuned.
    """
    cards = {run.task.name: read_card(Path(run.bilm.tuning.folder)) for run in runs}
    (name, sha256), *others = {(card["parent"]["name"], card["parent"]["sha256"]) for card in cards.values()}
    if others:
        raise UserError("these biLMs were tuned from different parents: tune them again, or one task after another")
    scale, root = runs[0].scale.name, runs[0].results_root
    settings = {"study": "tuning", "scale": scale, "version": 1, "bilms": [sha256]}
    by_task = {}  # the tunings' differences from the scale's files
    for run in runs:
        typed = variant(run, places_too=True)
        found = {key: value for key, value in typed.items() if key.startswith(("bilm.tuning.", "task.data."))}
        if any(key.startswith("task.data.") for key in found):
            found[TEXT] = cards[run.task.name]["key"]  # a digest of the complete recipe
        by_task |= {run.task.name: found} if found else {}
    settings |= {"changes": by_task} if by_task else {}
    shown = {key: value for found in by_task.values() for key, value in found.items() if key != TEXT}
    what = ", ".join([WHAT, *settings_text(shown)])
    record = StudyRecord(scale, "tuning", what, NOTE, [], name, 7, settings)
    new = [cell for run in runs for cell in cells(run.task.name, cards[run.task.name], run.task.perplexity or {})]
    if (path := record.place(root)).is_file():
        with suppress(store.Mismatch):
            new += [cell for cell in studies.read(path).cells if cell.source not in cards]
    return studies.write(replace(record, cells=sorted(new, key=lambda cell: cell.source)), root)


def cells(task: str, card: dict, paper: dict) -> list[StudyCell]:
    """The numbers of a task, from the card of its tuned biLM.

    Args:
        paper: its perplexities in the paper, before and after.
    """
    text = card["text"]
    counts = {
        "words read": text["train"]["words"],
        "vocabulary": text["vocabulary"],
        "unknown, %": 100 * text["dev"]["unknown"] / text["dev"]["words"],
    }
    found = [StudyCell(task, quantity, count) for quantity, count in counts.items()]
    measured = {"before": card["before"][DEV], "after": card["perplexity"][DEV]}
    for when, known in measured.items():
        found += [StudyCell(task, f"{when}, {way}", known[way], n=known["tokens"]) for way in ("forward", "backward")]
        found.append(StudyCell(task, when, known["mean"], n=known["tokens"], paper=paper.get(when)))
    change = _lowered(*(known["mean"] for known in measured.values()))
    of_paper = _lowered(paper["before"], paper["after"]) if paper.get("after") else None
    return [*found, StudyCell(task, LOWERED, change, paper=of_paper, **interval(change, **measured))]


def interval(change: float, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The 95 % interval of a change in percent, by leaving out each piece of the text in turn (the jackknife).

    Args:
        before, after: results of `BidirectionalLM.perplexity` for one text; cards of earlier versions have no pieces.

    Returns:
        low, high and clusters, the number of pieces; nothing if there are fewer than two.
    """
    number = len(before.get("pieces", [[]])[0])
    if number < 2 or "pieces" not in after:
        return {}
    without = [[np.delete(known["pieces"], i, axis=1) for known in (before, after)] for i in range(number)]
    changes = [_lowered(*(float(np.exp(each.mean(1)).mean()) for each in pair)) for pair in without]
    spread = Spread.of_values([number * change - (number - 1) * each for each in changes])
    assert spread is not None  # there are at least two pieces
    low, high = spread.around(change)
    return {"low": low, "high": high, "clusters": number}


def _lowered(before: float, after: float) -> float:
    return 100 * (1 - after / before)

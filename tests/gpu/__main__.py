"""All that needs a GPU, in one command that can be resumed: `make gpu`, or `python -m tests.gpu`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from elmo_bench.commands.command import Argument, Command, several, whole
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument("device", "cuda; cpu: the same parts at reduced sizes", "cuda", kind=Literal["cuda", "cpu"]),
        Argument("limit", "seconds for all parts; the same command goes on with the rest", 480, kind=whole(1)),
        Argument("only", "parts, with commas between them, as tests,steps.ner; by default all", None, "PART,..."),
        Argument("data_root", "folder of the open data, for rows of real text; also DATA_ROOT", None, "FOLDER"),
        Argument("rows", "folder of rows that were chosen with choose=, where there are no data", None, "FOLDER"),
        Argument("choose", "choose rows for rows= from the data, write them to this folder, and end", None, "FOLDER"),
        Argument("force", "do again what is done", False, kind=bool),
        Argument("results_root", "where gpu.json and gpu.md are written; by default results/own/", None, "FOLDER"),
    ),
    (
        ("", "on a machine with a GPU"),
        ("choose=rows data_root=FOLDER", "on any machine, for one that has a GPU but no data"),
        ("device=cpu only=encode", "shows here that a part runs"),
    ),
    (
        "Tests: the biLM against stored activations, a step of every task against the CPU's in float32 and in bf16, "
        "determinism, how often a step waits for the GPU, pretraining, a whole run, and two devices where there are "
        "two. Measurements at the paper's sizes: encoding, a training step of every task with ELMo from the cache, "
        "pretraining; time, memory, share of the best product, projected hours. Whole runs of 200 batches by the "
        "command train: with the cache cold, in 16 bits, in TF32, killed and resumed.",
        "Needs neither network nor data, and of the packages neither wandb nor gensim.",
    ),
    again="the same command goes on with the parts that are left",
    page="gpus",
    calls=("python -m tests.gpu {given}", "make gpu ARGS='KEY=VALUE ...'"),
)  # fmt: skip


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    data = overrides(given["data_root"] or os.environ.get("DATA_ROOT"))
    if given["choose"]:
        return choose(Path(given["choose"]), data)
    from elmo_bench.bilm.pretraining.parallel import choose_device

    place = choose_device(given["device"])
    from elmo_bench.system.storage.files import write_text
    from tests.gpu import run  # imports Lightning, for which nobody waits who has no GPU

    rows = Path(given["rows"]) if given["rows"] else None
    parts = run.parts(place.type)
    only = Argument("only", "", kind=several(parts)).read(given["only"]) if given["only"] else parts
    work = run.Work(place, rows, data, only)
    folder = Path(given["results_root"] or places.OWN)
    file = folder / "gpu.json"
    if given["force"]:
        file.unlink(missing_ok=True)
    found = run.run(work, file, given["limit"], lambda line: print(line, flush=True))
    write_text(folder / "gpu.md", run.markdown(found))
    print(f"written to {file} and {folder / 'gpu.md'}")
    left = [part for part in work.parts if "failed" in found["parts"].get(part, {"failed": ""})]
    if left:
        raise UserError(f"{len(left)} of {len(work.parts)} parts failed or are left: {', '.join(left)}; "
                        "the same command does these")  # fmt: skip
    return None


def overrides(data_root: str | None) -> list[str]:
    """Those that choose the data: what lies in a folder, or the generated ones."""
    if data_root and not Path(data_root).is_dir():
        raise UserError("data_root is not a folder", data_root)
    return ["scale=open", f"data_root={data_root}"] if data_root else ["scale=mini"]


def choose(folder: Path, data: Sequence[str]) -> None:
    """Writes the rows that a GPU is measured with, <task>.json each."""
    from elmo_bench.speed import cases
    from tests.gpu.part import PAPER

    folder.mkdir(parents=True, exist_ok=True)
    for task in cases.tasks(data[0].removeprefix("scale=")):
        cases.write(cases.choose(task, data, PAPER.scale, PAPER.batches), folder / f"{task}.json")
        print(f"{task}: {folder / task}.json", flush=True)


if __name__ == "__main__":
    COMMAND.run(main, "gpu", "run the tests that need a GPU, and measure it")

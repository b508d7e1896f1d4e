"""All that needs a GPU, in one command that can be resumed: `make gpu`, or `python -m tests.gpu`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import PositiveInt

from elmo_bench.commands.command import Command, Examples, Folder, several
from elmo_bench.configuration.keys import valid
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text


class Gpu(Command):
    """Run the tests that need a GPU, and measure it.

    Tests: the biLM against stored activations, a step of every task against the CPU's in float32 and in bf16,
    determinism, how often a step waits for the GPU, pretraining, a whole run, and two devices where there are two.
    Measurements at the paper's sizes: encoding, a training step of every task with ELMo from the cache, pretraining;
    time, memory, share of the best product, projected hours. Whole runs of 200 batches by the command train: with the
    cache cold, in 16 bits, in TF32, killed and resumed.

    Needs neither network nor data, and of the packages neither wandb nor gensim.
    """

    page: ClassVar[str] = "gpus"
    again: ClassVar[str] = "the same command goes on with the parts that are left"
    calls: ClassVar[tuple[str, str]] = ("python -m tests.gpu {given}", "make gpu ARGS='KEY=VALUE ...'")
    examples: ClassVar[Examples] = {
        "": "on a machine with a GPU",
        "choose=rows data_root=FOLDER": "on any machine, for one that has a GPU but no data",
        "device=cpu only=encode": "shows here that a part runs",
    }
    device: Literal["cuda", "cpu"] = "cuda"
    """cuda; cpu: the same parts at reduced sizes"""
    limit: PositiveInt = 480
    """seconds for all parts; the same command goes on with the rest"""
    only: Annotated[str, "PART,..."] | None = None
    """parts, with commas between them, as tests,steps.ner; by default all"""
    data_root: Folder | None = None
    """folder of the open data, for rows of real text; also DATA_ROOT"""
    rows: Folder | None = None
    """folder of rows that were chosen with choose=, where there are no data"""
    choose: Folder | None = None
    """choose rows for rows= from the data, write them to this folder, and end"""
    force: bool = False
    """do again what is done"""
    results_root: Folder | None = None
    """where gpu.json and gpu.md are written; by default results/own/"""

    def run(self) -> None:
        data = overrides(self.data_root or os.environ.get("DATA_ROOT"))
        if self.choose:
            return choose(Path(self.choose), data)
        from elmo_bench.bilm.pretraining.parallel import choose_device

        place = choose_device(self.device)
        from elmo_bench.system.storage.files import write_text
        from tests.gpu import run  # imports Lightning, for which nobody waits who has no GPU

        rows = Path(self.rows) if self.rows else None
        parts = run.parts(place.type)
        only = valid(Annotated[str, several(parts)], self.only, "only", text=True) if self.only else parts
        work = run.Work(place, rows, data, only)
        folder = Path(self.results_root or places.OWN)
        file = folder / "gpu.json"
        if self.force:
            file.unlink(missing_ok=True)
        found = run.run(work, file, self.limit, lambda line: print(line, flush=True))
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
    from elmo_bench.speed import steps as task_steps
    from tests.gpu.part import PAPER

    folder.mkdir(parents=True, exist_ok=True)
    for task in task_steps.tasks(data[0].removeprefix("scale=")):
        chosen = task_steps.choose(task, data, PAPER.scale, PAPER.batches)
        files.write_text(folder / f"{task}.json", json_text.dumps(chosen))
        print(f"{task}: {folder / task}.json", flush=True)


if __name__ == "__main__":
    Gpu.main("gpu")

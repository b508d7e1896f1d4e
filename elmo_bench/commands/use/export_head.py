"""Makes a run's model the head that `predict task=NAME` uses: `elmo-bench export_head checkpoint=FILE.ckpt`."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.commands.command import Argument, Command
from elmo_bench.system import places

COMMAND = Command(
    (
        Argument("checkpoint", "of a finished run, in its work folder, its record beside that", value="FILE.ckpt"),
        Argument("output", "folder of heads; by default models/heads", None, "FOLDER"),
    ),
    (("checkpoint=results/own/work/open/ner/.../best.ckpt", "writes models/heads/ner/"),),
    (
        "Writes TASK/head.ckpt, the model without its biLM in float16, and TASK/card.json, with the scores of the "
        "record and the file's sha256. The biLM is found again below models_root; it must have the same weights.",
    ),
    page="predicting",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.trained.heads import FOLDER, export

    given = COMMAND.parse()
    print(export(Path(given["checkpoint"]), Path(given["output"] or places.ROOT / "models" / FOLDER)))

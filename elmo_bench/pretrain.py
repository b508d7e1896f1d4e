"""A biLM from plain text: `elmo-bench pretrain scale=open data_root=FOLDER`, or `make pretrain SCALE=open`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from elmo_bench.configuration import pages
from elmo_bench.experiment.usage import PRETRAIN as COMMAND
from elmo_bench.system import places
from elmo_bench.system.errors import UserError


def main() -> None:
    """The entry point."""
    from rich.console import Console

    from elmo_bench.bilm.pretraining.run import make_recipe, pretrain, show

    chosen = [f"pretrain={a.removeprefix('scale=')}" if a.startswith("scale=") else a for a in sys.argv[1:]]
    cfg = pages.compose(chosen, "pretrain")
    if cfg.root is None:
        raise UserError(f"where is the text? give {places.DATA_ROOT} with lm/ in it")
    output = Path(cfg.output)
    if output.exists() and not cfg.force:
        print(f"{output} is there already; force=true trains it anew", file=sys.stderr)
        card = json.loads((output / "card.json").read_text(encoding="utf-8"))
    else:
        work = Path(cfg.cache_root) / "pretrain"
        card = pretrain(make_recipe(cfg.recipe), Path(cfg.root), work, output, cfg.compile, cfg.every, cfg.force)
    show(card, Console())


if __name__ == "__main__":
    COMMAND.run(main)

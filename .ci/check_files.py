"""Fails when a file to be committed is data or is too large: `python .ci/check_files.py FILE...`.

Data sets have licences of their own and history keeps every byte for ever. Only models/ (the biLMs and heads trained
here, with their cards) may hold large binary files, each under 32 MiB; tests may hold small ones, with invented text,
and results/runs/ the scores of a run's items (`*.items.npz`), which hold numbers and no text but the clusters' names.
In a folder of models/ a whole card.json names the sha256 of every file but texts (.md): what it does not name could be
damaged, and nobody would know. Any other file has at most 1 MiB, and the report, which holds all its pictures and
the links to its records, 2 MiB.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.json_text import FILES, read_sealed

MIB = 1 << 20
CARD = "card.json"
LARGER = {"results/report.html": 2 * MIB}
DATA = {
    *(".conll", ".conllu", ".iob2", ".bio", ".gold_conll", ".gold_skel"),
    *(".jsonl", ".tsv", ".csv", ".parquet", ".arrow"),
    *(".h5", ".hdf5", ".npy", ".npz", ".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".pickle"),
    *(".gz", ".xz", ".bz2", ".zip", ".tar", ".7z"),
}


def fault(name: str) -> str | None:
    """What speaks against committing the file, or None."""
    path, place = Path(name), PurePosixPath(name).parts[0]
    if not path.is_file():  # deleted, or a link to nowhere
        return None
    size, limit = path.stat().st_size, LARGER.get(name, 32 * MIB if place == "models" else MIB)
    if size > limit:
        return f"{size / MIB:.1f} MiB; the limit here is {limit // MIB} MiB"
    items = name.endswith(".items.npz") and PurePosixPath(name).is_relative_to("results/runs")
    if path.suffix.lower() in DATA and place not in ("models", "tests") and not items:
        return f"{path.suffix} files are data: generate them, or read them from DATA_ROOT"
    if place == "models" and path.suffix != ".md" and path.name != CARD and not _named(path):
        return f"its sha256 is not in `files` of the {CARD} beside it; let the command that made it write both again"
    return None


def _named(path: Path) -> bool:
    """Whether the card beside a file names its sha256."""
    try:
        return read_sealed(path.with_name(CARD), "card", "")[FILES][path.name] == sha256(path)
    except (UserError, LookupError, TypeError):
        return False


def main(names: list[str]) -> int:
    """Prints one line for each file at fault and returns the exit status."""
    faults = [(name, message) for name in names if (message := fault(name))]
    for name, message in faults:
        print(f"{name}: {message}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

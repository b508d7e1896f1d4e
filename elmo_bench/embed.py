"""ELMo layers of a text file: `python -m elmo_bench.embed options=O weights=W input=TXT output=H5 [state=warm]`.

The output is laid out as AllenNLP's `elmo` command wrote it: line i of the input (from 0) becomes dataset "i" of shape
(L+1, tokens, 2P), and `sentence_to_index` holds a JSON object from each line to its "i".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import h5py
from rich.console import Console
from rich.progress import track

from elmo_bench.bilm import BiLM
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import open_text, replacement

GROUP = 1024  # lines read at once: the biLM sorts them by length into batches of its token budget


def embed(bilm: BiLM, source: Path, output: Path, group: int = GROUP) -> int:
    """Writes the layers of every line of `source`, one whitespace-tokenized sentence a line; an empty line gives none.

    Args:
        bilm: with state "carry", line k of a group goes on from line k of the group before.
        output: appears only when it is whole.
        group: lines computed together, which bounds the memory.

    Returns:
        How many lines there were.

    Raises:
        UserError: the input is missing, empty or not UTF-8 (its line is named); the output cannot be written.
    """
    index: dict[str, str] = {}
    count = 0
    console = Console(stderr=True)
    with replacement(output) as partial, open_text(source) as lines, _create(partial, output) as file:
        groups = track(_groups(lines, group), "embedding", console=console, disable=not console.is_terminal)
        for texts in groups:
            for text, layers in zip(texts, bilm.encode([text.split() for text in texts]), strict=True):
                file.create_dataset(str(count), data=layers.cpu().numpy())
                index[text] = str(count)
                count += 1
        if not count:
            raise UserError("the file is empty; expected one whitespace-tokenized sentence a line", source)
        strings = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
        strings[0] = json.dumps(index)
    return count


def _create(partial: Path, output: Path) -> h5py.File:
    if output.is_dir():
        raise UserError("is a folder; give the name of a file", output)
    try:
        return h5py.File(partial, "w")
    except OSError as error:
        raise UserError(f"cannot be written ({error})", output) from None


def _groups(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while group := [line.strip() for line in islice(lines, size)]:
        yield group


def main() -> None:
    """The entry point."""
    given = console.arguments(sys.argv[1:], ("options", "weights", "input", "output"), ("state", "group"))
    group = given.get("group", str(GROUP))
    if not group.isdecimal() or not int(group):
        raise UserError(f"group={group}: not a number of lines above 0")
    bilm = BiLM.from_files(given["options"], given["weights"], given.get("state", "warm"))
    count = embed(bilm, Path(given["input"]), Path(given["output"]), int(group))
    print(f"{count} lines -> {given['output']}", file=sys.stderr)


if __name__ == "__main__":
    console.report(main)

"""ELMo layers of a text file: `elmo-bench embed options=O weights=W input=TXT output=H5 [state=warm]`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.commands.usage import BILM_FILES, bilm_files
from elmo_bench.system.errors import UserError
from elmo_bench.system.exhaustion import explained
from elmo_bench.system.storage import json_text, outputs
from elmo_bench.system.storage.disk import steady
from elmo_bench.system.storage.files import open_text, replacing

if TYPE_CHECKING:  # `--help` does not import them
    import h5py
    from torch import Tensor

    from elmo_bench.bilm import BiLM

COMPARED = 32  # lines computed in fp32 too, with precision=bf16
GROUP = 1024  # lines read at once: the biLM sorts them by length into batches of its token budget
OTHER_FORMATS = (".npz", ".npy", ".pt", ".safetensors", ".json", ".jsonl", ".csv", ".txt")
COMMAND = Command(
    (
        *BILM_FILES,
        Argument("input", "one whitespace-tokenized sentence a line; .gz and .xz are read too", value="FILE.txt"),
        Argument("output", "the HDF5 file to write", value="FILE.hdf5"),
        Argument(
            "state", "LSTM state at the start of a sentence: zero, warm (the state after eight empty sentences) or "
            "carry (the final state of this line in the previous group)", "warm", kind=Literal["zero", "warm", "carry"],
        ),
        Argument("group", "lines read together; bounds the memory", GROUP, kind=whole(1)),
        Argument("token_budget", "tokens computed at once, except with state=carry", 2048, kind=whole(1)),
        Argument(
            "precision", "of the products: fp32, or bf16, which is faster on some processors; at the end the command "
            "prints how far the layers are from fp32. A processor without bf16 computes in fp32", "fp32",
            kind=Literal["fp32", "bf16"],
        ),
    ),
    (
        ("input=text.txt output=layers.hdf5", "by the open biLM, which comes with the project"),
        ("bilm=own/biLM input=text.txt output=layers.hdf5", "by that of a folder"),
    ),
    (
        'Line i of the input (from 0) becomes the data set "i" of shape (layers, tokens, width), float32, and the data '
        'set sentence_to_index holds a JSON object from each line to its "i": the layout of AllenNLP\'s elmo command.',
    ),
    page="bilms",
)  # fmt: skip


def embed(bilm: BiLM, source: Path, output: Path, group: int = GROUP) -> int:
    """Writes the layers of every line of `source`, one whitespace-tokenized sentence a line; an empty line has no
    words.

    The output is laid out as AllenNLP's `elmo` command wrote it: line i of the input (from 0) becomes dataset "i" of
    shape (L+1, tokens, 2P), and `sentence_to_index` holds a JSON object from each line to its "i".

    Args:
        bilm: with state "carry", line k of a group starts from the final state of line k of the previous group.
        output: appears only when it is complete.
        group: lines computed together; bounds the memory.

    Returns:
        The number of lines.

    Raises:
        UserError: the input is missing, empty, JSON or not UTF-8, or its layers are not finite (its line is named); the
            output cannot be written, or has the name of another format.
    """
    import h5py

    from elmo_bench.bilm.corpus import check_text
    from elmo_bench.system.terminal.bars import tracked

    if not output.parent.is_dir():
        raise UserError("no such folder for the output", output.parent)
    if output.suffix in OTHER_FORMATS:
        raise UserError("embed writes HDF5; name the output .hdf5", output)
    check_text(source)
    count = 0
    with (
        replacing(output, "w+b") as whole, steady(whole) as stream, open_text(source) as lines,
        tempfile.TemporaryFile(dir=output.parent) as index, h5py.File(stream, "w") as file,
    ):  # fmt: skip
        for texts in tracked(_groups(lines, group), "embedding"):
            for text, layers in zip(texts, _encoded(bilm, texts), strict=True):
                if not layers.isfinite().all():
                    raise UserError(f"the layers of this line are not finite: {text}", source, count + 1)
                file.create_dataset(str(count), data=layers.cpu().numpy())
                line = f"{', ' if count else '{'}{json_text.dumps(text)}: {json_text.dumps(str(count))}"
                index.write(line.encode())
                count += 1
            if error := stream.raw.error:  # type: ignore[attr-defined]
                raise error  # no more is computed for a file that will not come
        if not count:
            raise UserError("the file is empty; expected one whitespace-tokenized sentence a line", source)
        index.write(b"}")
        place = _room(file, index.tell())
        file.close()
        stream.seek(place)
        index.seek(0)
        shutil.copyfileobj(index, stream)
        stream.flush()
        if error := stream.raw.error:  # type: ignore[attr-defined]
            raise error
    return count


def _room(file: h5py.File, size: int) -> int:
    """Where in the file a text of this many bytes belongs: it may be longer than what fits into memory."""
    import h5py

    filled = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    filled.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    filled.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    strings = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype(length=size), dcpl=filled)
    return strings.id.get_offset()


def _encoded(bilm: BiLM, texts: list[str]) -> list[Tensor]:
    sentences = [text.split() for text in texts]
    with explained(lambda: f"keeping layers of {len(texts)} lines, {sum(map(len, sentences))} tokens", "lower group"):
        return bilm.encode(sentences)


def _groups(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while group := [line.strip() for line in islice(lines, size)]:
        yield group


def main() -> None:
    """The entry point."""
    from elmo_bench.bilm import BiLM

    given = COMMAND.parse()
    ways = given["state"], given["token_budget"], given["precision"]
    source, output, files = Path(given["input"]), Path(given["output"]), bilm_files(given)
    outputs.apart(output, files)  # also those of bilm=open, which nobody has typed
    bilm = BiLM.from_files(*files, *ways)
    count = embed(bilm, source, output, given["group"])
    print(f"{count} line{'s' * (count != 1)} -> {given['output']}", file=sys.stderr)
    if bilm.state == "carry" and 1 < count <= given["group"]:
        print(
            "state=carry: every line began from zeros, for all are one group; group=1 carries from each to the next",
            file=sys.stderr,
        )
    if bilm.precision != "fp32":
        print(_stated(bilm, source), file=sys.stderr)


def _stated(bilm: BiLM, source: Path) -> str:
    """How far the first lines are from fp32."""
    with open_text(source) as lines:
        sentences = [line.split() for line in islice(lines, COMPARED)]
    difference = bilm.difference(sentences)
    return f"{bilm.precision}: the first {len(sentences)} lines differ from fp32 by at most {difference:.2g}"

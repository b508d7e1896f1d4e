"""Commands that use trained models and biLMs."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from elmo_bench.commands.bilm import OfBilm
from elmo_bench.commands.command import Command, Examples, File, Folder, HelpSection, Name
from elmo_bench.commands.demo import cosines, launch, packages, place
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, explained
from elmo_bench.system.storage import json_text, outputs
from elmo_bench.system.storage.disk import steady
from elmo_bench.system.storage.files import open_text, replacing

if TYPE_CHECKING:  # `--help` does not import them
    import h5py
    from torch import Tensor

    from elmo_bench.bilm import BiLM

COMPARED = 32  # lines computed in fp32 too, with precision=bf16
GROUP = 1024  # lines read at once; the biLM sorts them by length into batches of its token budget
OTHER_FORMATS = (".npz", ".npy", ".pt", ".safetensors", ".json", ".jsonl", ".csv", ".txt")
Number = Annotated[PositiveInt, "N"]


class Predict(Command):
    """Apply a trained model to new text.

    format=json: each line is a JSON object that repeats the input and adds the model's answer under the key
    "prediction": labels by name, with probabilities if the model has any, and the words of tokenized text.
    format=official: a file for `score` and the official scorer.

    JSON objects are given one per line, or in an array. The input may also be a table or a file of the data set, with
    or without answers: columns, trees, SNLI's files, SQuAD's .json; or plain text named .txt. SQuAD's output is
    official if it is named .json, unless you type format=json.
    """

    page: ClassVar[str] = "predicting"
    examples: ClassVar[Examples] = {
        "task=ner text='Ida sang in Oslo.'": "the head that comes with the project",
        "task=ner input=in.jsonl output=out.jsonl": "",
        "checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=out.jsonl": "",
        "checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=answers.txt format=official": "for `score`",
    }
    task: Name | None = None
    """use the trained head in models_root/heads; with checkpoint: its task"""
    checkpoint: File | None = None
    """checkpoint of a run; its record gives the path, relative to results_root"""
    text: Annotated[str, "'...'"] | None = None
    """one text, in quotation marks, instead of input"""
    input: File | None = None
    """JSON objects, plain text, any file that training reads; - for a pipe"""
    output: File | None = None
    """one line for each row of the input, in its order; by default printed"""
    format: Literal["json", "official"] | None = None
    """json (the default) or official (see above)"""
    models_root: Folder | None = None
    """folder of heads and their biLMs; by default models/"""
    options: File | None = Field(default=None, alias="bilm.options")
    """the biLM's options file, if it has moved"""
    weights: File | None = Field(default=None, alias="bilm.weights")
    """the biLM's weights file, if it has moved"""
    path: Folder | None = Field(default=None, alias="bilm.path")
    """the folder of the Hugging Face model, if it has moved"""
    accelerator: Name | None = Field(default=None, alias="trainer.accelerator")
    """cpu, gpu or auto; by default as in the run"""
    threads: Number | None = Field(default=None, alias="trainer.threads")
    """CPU threads; by default as in the run"""
    batch_size: Number | None = None
    """rows computed at once; by default as in the run"""
    data: dict[str, Any] = Field(default={}, alias="task.data.KEY")
    """keys for reading files, as in training: columns, labels, word_column, tag_names ..."""

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        """The contents of an input line and an output line for each task, from its package."""
        formats = ((f"{task}, {part}", text) for task, package in packages()
                   for part, text in getattr(package, "PREDICT", {}).items())  # fmt: skip
        return [HelpSection("Formats of a line, by task", [*formats])]

    def run(self) -> None:
        from elmo_bench.trained.prediction import predict

        given = {key.replace("task.data.KEY", "data"): value for key, value in self.plain().items()}
        number = predict(**{key: value for key, value in given.items() if key not in ("debug", "typed")})
        if self.output is not None:
            print(f"{number} prediction{'s' * (number != 1)} in {self.output}", file=sys.stderr)


class Demo(Command):
    """A page on which you try the trained models and the biLM's vectors.

    The page has a tab for each task: type a text, and see the answer marked in it, its probabilities and the trained
    head's weights of the biLM's layers. The last tab compares a word's vectors in two sentences, layer by layer. It
    needs the extra `demo`: pip install 'elmo_bench[demo]'.
    """

    page: ClassVar[str] = "predicting"
    examples: ClassVar[Examples] = {
        "": "opens on http://127.0.0.1:7860; Ctrl+C ends it",
        "port=8080 public=true": "also for others on the network, without a password",
    }
    checkpoint: File | None = None
    """checkpoint of a run, instead of its task's head"""
    bilm: Name = "open"
    """the biLM whose vectors are compared: open, mini, or a folder"""
    port: Annotated[int, Field(ge=0, le=65535), "N"] = 7860
    """port of the page at this machine's address 127.0.0.1"""
    public: bool = False
    """true: every machine on the network can open the page"""

    def run(self) -> None:
        launch(self.checkpoint, self.bilm, self.port, self.public)


class Embed(OfBilm):
    """Write the biLM's layers for each line of a text file.

    Line i of the input (from 0) becomes the data set "i" of shape (layers, tokens, width), float32, and the data set
    sentence_to_index has a JSON object that maps each line to its "i", as with AllenNLP's elmo command.
    """

    page: ClassVar[str] = "bilms"
    examples: ClassVar[Examples] = {
        "input=text.txt output=layers.hdf5": "by the open biLM, which comes with the project",
        "bilm=own/biLM input=text.txt output=layers.hdf5": "by a biLM in a folder",
    }
    input: File
    """one whitespace-tokenized sentence per line; .gz and .xz are read, too"""
    output: File
    """the HDF5 file to write"""
    state: Literal["zero", "warm", "carry"] = "warm"
    """LSTM state at the start of a sentence: zero, warm (the state after eight empty sentences) or carry (the final
    state of this line in the previous group)"""
    group: PositiveInt = GROUP
    """lines read together; limits the memory"""
    token_budget: PositiveInt = 2048
    """tokens computed at once, except with state=carry"""
    precision: Literal["fp32", "bf16"] = "fp32"
    """of the products: fp32, or bf16, which is faster on some processors; at the end the command prints the difference
    from fp32. A processor without bf16 computes in fp32"""

    def run(self) -> None:
        from elmo_bench.bilm import BiLM

        source, output, files = Path(self.input), Path(self.output), self.files()
        outputs.apart(output, files)  # also those of bilm=open, which are not typed
        bilm = BiLM.from_files(*files, self.state, self.token_budget, self.precision)
        count = embed(bilm, source, output, self.group)
        print(f"{count} line{'s' * (count != 1)} -> {self.output}", file=sys.stderr)
        if bilm.state == "carry" and 1 < count <= self.group:
            why = "every line began from zeros, because all are one group"
            print(f"state=carry: {why}; group=1 carries the state from each line to the next", file=sys.stderr)
        if bilm.precision != "fp32":
            with open_text(source) as lines:
                sentences = [line.split() for line in islice(lines, COMPARED)]
            apart = f"the first {len(sentences)} lines differ from fp32 by at most {bilm.difference(sentences):.2g}"
            print(f"{bilm.precision}: {apart}", file=sys.stderr)


def embed(bilm: BiLM, source: Path, output: Path, group: int = GROUP) -> int:
    """Writes the layers of every line of `source`, one whitespace-tokenized sentence per line; an empty line has no
    words.

    The output has the layout of AllenNLP's `elmo` command: line i of the input (from 0) becomes dataset "i" of shape
    (L+1, tokens, 2P), and `sentence_to_index` has a JSON object that maps each line to its "i".

    Args:
        bilm: with state "carry", line k of a group starts from the final state of line k of the previous group.
        output: appears only when it is complete.
        group: lines computed together; limits the memory.

    Returns:
        The number of lines.
    """
    import h5py

    from elmo_bench.bilm.corpus import check_text
    from elmo_bench.system.console import tracked

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
        groups = iter(lambda: [line.strip() for line in islice(lines, group)], [])
        for texts in tracked(groups, "embedding"):
            for text, layers in zip(texts, _encoded(bilm, texts), strict=True):
                if not layers.isfinite().all():
                    raise UserError(f"the layers of this line are not finite: {text}", source, count + 1)
                file.create_dataset(str(count), data=layers.cpu().numpy())
                line = f"{', ' if count else '{'}{json_text.dumps(text)}: {json_text.dumps(str(count))}"
                index.write(line.encode())
                count += 1
            if error := stream.raw.error:  # type: ignore[attr-defined]
                raise error  # nothing more is computed for a file that cannot be written
        if not count:
            raise UserError("the file is empty; expected one whitespace-tokenized sentence per line", source)
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
    """The place in the file for a text of this many bytes, which may not fit into memory."""
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


class Compare(OfBilm):
    """Compare a word's vectors in two sentences, layer by layer.

    Prints the cosine of the two vectors in each layer, and their distance, 1 - cosine. Layer 0 knows only the
    characters: there a word always equals itself, with cosine 1. The halves of a layer, which have read the previous
    and the following words, are also compared separately.
    """

    page: ClassVar[str] = "bilms"
    examples: ClassVar[Examples] = {
        "word=play first='they play chess' second='a play by Ibsen'": "by the open biLM",
    }
    word: str
    """a word of both sentences, spelled as in them"""
    first: Annotated[str, "'WORDS'"]
    """a tokenized sentence with the word"""
    second: Annotated[str, "'WORDS'"]
    """another tokenized sentence with it"""
    first_at: PositiveInt = 1
    """which of the word's occurrences in the first sentence, from 1"""
    second_at: PositiveInt = 1
    """the same for the second sentence"""
    state: Literal["zero", "warm"] = "warm"
    """LSTM state at the start of a sentence: zero or warm (the state after eight empty sentences)"""

    def run(self) -> None:
        sentences = self.first.split(), self.second.split()
        at = [
            place(self.word, sentence, number, name)
            for name, sentence, number in zip(
                ("first", "second"), sentences, (self.first_at, self.second_at), strict=True
            )
        ]

        from elmo_bench.bilm import BiLM

        bilm = BiLM.from_files(*self.files(), self.state)
        print("layer  cosine  apart  forward  backward")
        for layer, (both, forward, backward) in enumerate(cosines(bilm, sentences, at)):
            print(f"{layer:5}  {both:6.3f}  {1 - both:5.3f}  {forward:7.3f}  {backward:8.3f}")


class ExportHead(Command):
    """Make a run's model the head for predict task=NAME.

    Writes TASK/head.ckpt, the model without its biLM in float16, and TASK/card.json, with the scores of the record and
    the file's sha256. The biLM is read from models_root; it must have the same weights.
    """

    page: ClassVar[str] = "predicting"
    examples: ClassVar[Examples] = {
        "checkpoint=results/own/work/open/ner/.../best.ckpt": "writes models/heads/ner/",
    }
    checkpoint: File
    """checkpoint of a finished run, in its work folder, with its record"""
    output: Folder | None = None
    """folder of heads; by default models/heads"""

    def run(self) -> None:
        from elmo_bench.trained.heads import FOLDER, export

        print(export(Path(self.checkpoint), Path(self.output or places.ROOT / "models" / FOLDER)))

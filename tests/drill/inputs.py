"""The drill of inputs: mutated files of every kind that is read. A trial ends with a result or in one line.

For each kind a valid file is mutated, in one of three trials also packed, and read in this process as the commands read
it. Scores must stay within 0 to 100, and be the same for predictions that differ in their packing or line ends alone.
"""

import io
import json
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_bench.analysis import pos, wsd
from elmo_bench.analysis.settings import PosConfig
from elmo_bench.bilm.corpus import Corpus, TextSource, most_frequent
from elmo_bench.bilm.encoder import character_table
from elmo_bench.bilm.lm import read_vocabulary
from elmo_bench.bilm.options import Options
from elmo_bench.commands.compare import find
from elmo_bench.commands.use import embed
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import read as read_table
from elmo_bench.records.studies import dumps
from elmo_bench.records.studies import read_all as read_studies
from elmo_bench.reporting.study_tables import of_study
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import content_sha256
from elmo_bench.trained import opened, prediction
from tasks.coref.reader import CorefReader
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.reader import SquadReader
from tasks.srl.reader import SrlReader
from tasks.sst5.reader import Sst5Reader
from tests import tiny_bilm
from tests.drill import documents as docs
from tests.drill.mutations import PACKERS, mutated
from tests.drill.trial import FAULT, ONE_LINE, RESULT, Answer, Area, of_error
from tests.fakes import jsonl

READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "ner": lambda data: NerReader(data | {"comment": "# "}, min_count=1),
    "srl": SrlReader,
    "coref": lambda data: CorefReader(data, min_count=1),
    "snli": SnliReader,
    "sst5": lambda data: Sst5Reader(data, phrases="all"),
    "squad": SquadReader,
}
LABELS = {"snli": ("neutral", "entailment", "-", "contradiction"), "sst5": ("0", "4", "2", "3", "1")}


class Kind(NamedTuple):
    """Files of one kind and what reads them.

    Attributes:
        files: content by name; the drill mutates those of `targets`.
        read: of the paths of the files in their order; an exception other than `UserError` is a fault.
        packable: whether a target may also be packed: its name then has another ending.
    """

    files: Mapping[str, str | bytes]
    targets: tuple[str, ...]
    read: Callable[..., None]
    packable: bool = True


def trial(kind: Kind, chance: random.Random) -> Answer:
    """One trial: RESULT, ONE_LINE or FAULT, and what was read and what came of it."""
    with tempfile.TemporaryDirectory(prefix="drill-") as name:
        target = chance.choice(kind.targets)
        contents = {key: each.encode() if isinstance(each, str) else each for key, each in kind.files.items()}
        contents[target] = mutated(contents[target], chance)
        paths = {key: Path(name, key) for key in contents}
        if kind.packable and chance.random() < 0.3:
            suffix = chance.choice(sorted(PACKERS))
            contents[target] = PACKERS[suffix](contents[target])
            contents[target] = mutated(contents[target], chance) if chance.random() < 0.3 else contents[target]
            paths[target] = Path(name, target + suffix)
        for key, path in paths.items():
            path.write_bytes(contents[key])
        return _outcome(partial(kind.read, *paths.values()), f"{paths[target].name}: {_shown(contents[target])}")


def _outcome(read: Callable[[], None], told: str) -> Answer:
    try:
        with redirect_stderr(io.StringIO()):
            read()
    except Exception as error:
        outcome, line = of_error(error) if isinstance(error, UserError) else (FAULT, traceback.format_exc())
        return outcome, line if outcome == ONE_LINE else f"{told}\n{line}"
    return RESULT, told


def _shown(content: bytes) -> str:
    return repr(content if len(content) < 2000 else content[:1000] + b" ... " + content[-1000:])


# What reads each kind.


def read_splits(task: str, *paths: Path) -> tuple[Any, Any]:
    """A task's reader and what it reads of train, dev and test."""
    reader = READERS[task](dict(zip(("train", "dev", "test"), map(str, paths), strict=True)))
    return reader, reader.load()


def load(task: str, *paths: Path) -> None:
    """A task's three splits, and a batch of each; also the digest that names the data."""
    reader, loaded = read_splits(task, *paths)
    for rows in loaded.values():
        if batch := [rows[i] for i in range(min(len(rows), 8))]:
            reader.collate(batch)
        json.dumps(batch, ensure_ascii=False, allow_nan=False).encode()
    for path in paths:
        content_sha256(path)


def rows_of_text(task: str, path: Path) -> None:
    """The rows and the echo of the input lines of `predict`."""
    reader = trained(task)
    pairs = prediction.read_rows(reader, str(path), task)
    if pairs:
        reader.collate([row for _, row in pairs[:8]])
    for raw, row in pairs:
        json.dumps(opened.answered(raw, row, reader.fields, {}), ensure_ascii=False, allow_nan=False).encode()


def rows_of_file(path: Path) -> None:
    """`predict` of a file of SQuAD's own format."""
    rows = trained("squad").from_file(str(path))
    trained("squad").collate(rows[:8])
    trained("squad").official([{"answer": ""} for _ in rows], rows)


@cache
def trained(task: str) -> Any:
    """A task's reader with the vocabularies of the valid files."""
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        paths = [Path(folder, name) for name in KINDS[task].files]
        for path in paths:
            path.write_text(str(KINDS[task].files[path.name]))
        return read_splits(task, *paths)[0]


def scores(task: str, gold: Path, predictions: Path) -> None:
    """The scores of predictions, within 0 to 100, and the same whatever their packing and line ends."""
    scorer = scorer_of(task)
    found = scorer(str(gold), str(predictions))
    json.dumps(found, allow_nan=False)
    for name, value in found.items():
        assert 0 <= value <= 100 + 1e-9, f"{name} = {value}"  # NaN is neither
    if predictions.suffix in PACKERS:
        return
    content = predictions.read_bytes()
    others = {f"again{predictions.name}.gz": PACKERS[".gz"](content)}
    if b"\r" not in content:
        others[f"crlf{predictions.name}"] = content.replace(b"\n", b"\r\n")
    for name, other in others.items():
        predictions.with_name(name).write_bytes(other)
        assert scorer(str(gold), str(predictions.with_name(name))) == found, f"{name} has other scores"


scorer_of = cache(find)


def table(vectors: Path, words: Path | None = None) -> None:
    """Word vectors."""
    found = read_table(VectorFiles(vectors, words), {*docs.WORDS, "²", ""}, 4)
    assert all(row.shape == (4,) and torch.isfinite(row).all() for row in found.values())
    content_sha256(vectors)


def options(path: Path) -> None:
    """The options of a biLM: what is read is written and read again as the same."""
    read = Options.read(path)
    assert Options.parse(read.model_dump(mode="json")) == read


def text(path: Path) -> None:
    """The text of a biLM, also counted and as the two streams."""
    corpus = Corpus.read([TextSource(path)], seed=1)
    assert corpus.counts.total() == len(corpus.tokens)
    forward, backward = corpus.streams(most_frequent(corpus.counts, 20))
    assert len(forward.inputs) == len(backward.targets) == len(corpus.tokens) + len(corpus.ends)
    character_table(corpus.types)


def vocabulary(path: Path) -> None:
    """The words of a softmax."""
    corpus = Corpus(["<S>", "</S>", "the", "lamp"], torch.tensor([2, 3, 2]).numpy(), torch.tensor([3]).numpy())
    corpus.by_frequency(read_vocabulary(path, docs.VOCABULARY.count("\n")))


class NoLayers:
    """Stands in for the biLM: layers of zeros."""

    def encode(self, sentences: list[list[str]]) -> list[torch.Tensor]:
        """(3, tokens, 2) for each sentence; the characters of its words are looked up."""
        character_table(word for sentence in sentences for word in sentence)
        return [torch.zeros(3, len(sentence), 2) for sentence in sentences]


def layers(path: Path) -> None:
    """The input of `embed`."""
    embed(NoLayers(), path, path.parent / "layers.hdf5")  # type: ignore[arg-type]


def study(path: Path) -> None:
    """A study of the biLM, of which the report shows the table."""
    place = docs.STUDY.place(path.parent)
    place.parent.mkdir(parents=True)
    shutil.move(path, place)
    list(map(of_study, read_studies(path.parent)))


def senses(path: Path, keys: Path | None = None) -> None:
    """Words with senses: in columns, or in XML with a gold key file."""
    for sentence in wsd.read_xml(path, keys) if keys else wsd.read_columns(path):
        assert all(one.start < one.end <= len(sentence.words) for one in sentence.instances)
        assert keys is None or all(one.keys for one in sentence.instances)


def sense_index(path: Path) -> None:
    """The inventory of WordNet."""
    wsd.read_index(path)


def tags(path: Path) -> None:
    """Words with parts of speech, in CoNLL-U."""
    read = pos.read(path, PosConfig(word=1, tags={"UPOS": 3, "XPOS": 4}, numbers=0, comment="#"))
    for each in read.tags.values():
        assert list(map(len, each)) == read.lengths


def listed(path: Path, *_: Path) -> None:
    """A list of files."""
    read_splits("srl", path, path, path)


def _splits(task: str, content: str, suffix: str) -> Kind:
    files = {f"{split}{suffix}": content for split in ("train", "dev", "test")}
    return Kind(files, tuple(files), partial(load, task))


def _pairs(task: str, gold: str, predictions: str) -> Kind:
    return Kind(
        {"gold": gold, "predictions": predictions}, ("predictions", "predictions", "gold"), partial(scores, task)
    )


def _labels(task: str) -> Kind:
    lines = [f"{label}\n" for label in LABELS[task]]
    return _pairs(task, "".join(lines), lines[0] + lines[1] * (len(lines) - 1))


KINDS: dict[str, Kind] = {
    "ner": _splits("ner", docs.NER, ".iob2"),
    "ner documents": Kind({**_splits("ner", docs.NER, ".iob2").files, "test.iob2.documents": docs.DOCUMENTS},
                          ("test.iob2.documents",), lambda *paths: load("ner", *paths[:3]), packable=False),
    "srl": _splits("srl", docs.CONLL, ".conll"),
    "coref": _splits("coref", docs.CONLL, ".conll"),
    "snli": _splits("snli", docs.SNLI_TSV, ".tsv"),
    "snli.jsonl": _splits("snli", docs.SNLI_JSONL, ".jsonl"),
    "sst5": _splits("sst5", docs.TREES, ".txt"),
    "squad": _splits("squad", json.dumps(docs.SQUAD), ".json"),
    "list": Kind({"files.list": "a.conll\nb\n", "a.conll": docs.CONLL, "b.gold_conll": docs.renamed()},
                 ("files.list",), listed, packable=False),
    "score ner": _pairs("ner", docs.NER[6:], docs.NER[6:].replace("B-ORG", "O")),
    "score srl": _pairs("srl", docs.CONLL, docs.CONLL.replace("ARG1", "ARG2", 1)),
    "score coref": _pairs("coref", docs.CONLL, docs.CONLL.replace("(1)", "(0)", 1)),
    "score snli": _labels("snli"),
    "score sst5": _labels("sst5"),
    "score squad": _pairs("squad", json.dumps(docs.SQUAD), json.dumps(docs.ANSWERS)),
    **{f"predict {task}": Kind({"in.jsonl": jsonl(rows)}, ("in.jsonl",), partial(rows_of_text, task))
       for task, rows in docs.PREDICT.items()},
    "predict squad.json": Kind({"in.json": json.dumps(docs.SQUAD)}, ("in.json",), rows_of_file),
    "vectors": Kind({"vectors.txt": docs.VECTORS}, ("vectors.txt",), table),
    "vectors.zip": Kind({"vectors.zip": docs.zipped({"4d.txt": docs.VECTORS.encode()})}, ("vectors.zip",), table,
                        packable=False),
    "vectors beside words": Kind({"numbers.txt": docs.NUMBER_LIST, "words.lst": docs.WORD_LIST},
                                 ("numbers.txt", "words.lst"), table),
    "vectors.npy": Kind({"numbers.npy": docs.matrix(), "words.lst": docs.WORD_LIST}, ("numbers.npy", "words.lst"),
                        table, packable=False),
    "options": Kind({"options.json": json.dumps(tiny_bilm.OPTIONS)}, ("options.json",), options, packable=False),
    "text": Kind({"text.txt": docs.SENTENCES}, ("text.txt",), text),
    "vocabulary": Kind({"words.txt": docs.VOCABULARY}, ("words.txt",), vocabulary),
    "embed": Kind({"in.txt": docs.SENTENCES}, ("in.txt",), layers),
    "senses": Kind({"senses.tsv": docs.SENSES}, ("senses.tsv",), senses),
    "senses.xml": Kind({"a.xml": docs.SENSES_XML, "a.txt": docs.SENSE_KEYS}, ("a.xml", "a.txt"), senses),
    "index.sense": Kind({"index.sense": docs.SENSE_INDEX}, ("index.sense",), sense_index),
    "parts of speech": Kind({"a.conllu": docs.CONLLU}, ("a.conllu",), tags),
    "study": Kind({"study.json": dumps(docs.STUDY, {})}, ("study.json",), study, packable=False),
}  # fmt: skip
TRIALS = {name: partial(trial, kind) for name, kind in KINDS.items()}
# Of the readers of data, of `score`, of `predict` and of vectors there are several kinds each, so that all have 20,000.
AREAS = [Area(f"inputs:{name}", 20_000 if name in ("options", "embed") else 5_000, do) for name, do in TRIALS.items()]

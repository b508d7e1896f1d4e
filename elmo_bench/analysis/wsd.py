"""The paper's Table 5: word senses by the nearest sense mean (section 5.3), and their official score.

The vectors of all occurrences of a sense are averaged, layer by layer. A test word gets the sense whose mean is nearest
by cosine, among the senses of its lemma and part of speech; a word that the training text lacks gets its first sense.
An expression of several words has the mean of their vectors.

Text with senses has one of three formats.

Columns: word, part of speech, lemma, sense keys (joined by ";"; "-": none), sense numbers of WordNet. A multiword
expression has a row for each of its words; the rows after its first have "=". A line "# ..." is a comment, and
"# doc = ..." begins a document.

XML (Raganato et al. 2017): `wf` and `instance` elements in `sentence` elements, those of a document in a `text`
element, and a gold key file, an instance's id and keys in each line.

Generated: one sentence per line, and the list of senses that the mini scale writes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError, XMLPullParser
from xml.parsers import expat

import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_bench.analysis.settings import WsdConfig
from elmo_bench.analysis.study import Score, Study, cluster_kind
from elmo_bench.metrics.items import AdditiveMetric, Number, ratio
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.system.console import tracked
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import numbered_lines, open_text
from elmo_bench.text.columns import in_comments, read_blocks
from elmo_bench.text.vocabulary import coverage

NOTE = (
    "Fine-grained F1 in percent over {instances} instances: precision over the attempted instances, recall over all; "
    "any of several gold keys is right. An instance has the sense whose mean over {train} sentences is nearest "
    "by cosine, or its first sense if these lack the word. 95 % intervals over the {clusters} of test. {scale}"
)
FIRST = "first sense"
LOW_COVERAGE = 0.1  # an inventory that covers a smaller share of the words is not meant for the text
AT_ONCE = 2048  # sentences given to the source of layers at once, to limit memory
TIE = 1e-5  # cosines this close are equal: in layer 0 a word form has the same vector in every sentence
NONE, INSIDE = "-", "="
POS = {"N": "n", "V": "v", "J": "a", "A": "a", "R": "r"}  # by the first letter of tags of PTB and UD, except ADV
TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # of a sense key; 5 is a satellite adjective

Word = tuple[str, str]  # lemma and part of speech


class Instance(NamedTuple):
    """A word, or an expression of several words, to disambiguate.

    Attributes:
        start, end: the positions of its words in the sentence.
        word: lemma and part of speech (n, v, a, r), whose senses are the candidates.
        keys: the correct senses; one of them is enough.
        numbers: the numbers of these senses in WordNet, 1 for the first; empty if the file has none.
        line: its line in the file with the senses.
    """

    start: int
    end: int
    word: Word
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    line: int


class SenseSentence(NamedTuple):
    """The words of a sentence, its instances with a sense, and its document if known."""

    words: list[str]
    instances: list[Instance]
    document: str | None = None


def measure(study: Study[WsdConfig]) -> StudyRecord:
    """The table."""
    train, test = (load(study.settings, split) for split in ("train", "test"))
    first = _first(study.settings, train, test)
    by_source = {FIRST: [first_sense(test, first)]}
    for name, source in study.open(cached=False).items():
        by_source[name] = disambiguate(source, train, test, first)
    cells = []
    for name, metrics in by_source.items():
        has_layers = name != FIRST
        cells += study.by_layer(name, "F1", [Score.of([each], "f1") for each in metrics], has_layers)
        for layer, metric in enumerate(metrics):
            scores = {key: value for key, value in metric.compute().items() if key != "f1"}
            cells += [StudyCell(name, key, value, layer if has_layers else None) for key, value in scores.items()]
    instances, kind = int(by_source[FIRST][0].items().totals()["total"]), cluster_kind(each.document for each in test)
    note = NOTE.format(instances=instances, train=len(train), clusters=kind, scale=study.run.scale.note)
    return study.record(5, "word senses", note, cells)


def load(settings: WsdConfig, split: str) -> list[SenseSentence]:
    """The sentences of train or test; a file without senses is refused."""
    keys = [split] if settings.format == "columns" else [split, f"{split}_senses"]
    named = [getattr(settings, key) for key in keys]
    if None in named:
        raise UserError(f"format={settings.format} needs {split}=FILE and {split}_senses=FILE")
    read = {"columns": read_columns, "xml": read_xml, "mini": read_mini}[settings.format]
    found = list(islice(read(*map(Path, named)), settings.sentences))
    if not any(sentence.instances for sentence in found):
        raise UserError("contains no word with a sense", named[0])
    return found


def _first(settings: WsdConfig, train: list[SenseSentence], test: list[SenseSentence]) -> dict[Word, str]:
    """The first senses: from the inventory, which must then have all keys, or from the training text."""
    if settings.inventory is None:
        return first_senses(train)
    path = Path(settings.inventory)
    numbers = read_index(path)
    for split, sentences in (("train", train), ("test", test)):
        gold = getattr(settings, f"{split}_senses") or getattr(settings, split)
        for instance in (instance for sentence in sentences for instance in sentence.instances):
            if unknown := next((key for key in instance.keys if key not in numbers), None):
                problem = f"the sense key {unknown} is not in {path.name}; use the inventory of the same WordNet"
                raise UserError(problem, gold, instance.line)
    keys = (key.split("%", 1) for key, number in numbers.items() if number == 1)
    first = {(lemma, TYPES.get(sense[:1], sense[:1])): f"{lemma}%{sense}" for lemma, sense in keys}
    words = [instance.word for sentence in test for instance in sentence.instances]
    remedy = "is it index.sense of the WordNet version of the keys, with the first sense numbered 1?"
    known = sum(word in first for word in words)
    print(coverage(path, known, len(words), "first senses of the words of test", LOW_COVERAGE, remedy), file=sys.stderr)
    return first


# The method and its score.


class SenseF1(AdditiveMetric):
    """The official score of answers to instances; an example is an instance."""

    statistics = ("right", "attempted", "total")

    def add(self, answer: str | None, gold: Sequence[str], cluster: str | int) -> None:
        """Counts an answer, or a missing one; any of the gold keys is correct."""
        self.tally.add(answer in gold, answer is not None, 1, cluster=cluster)

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """F1, precision over the attempted instances, recall over all, and the share attempted, in percent."""
        right, attempted, total = (totals[key] for key in SenseF1.statistics)
        return {
            "f1": ratio(200 * right, attempted + total),
            "precision": ratio(100 * right, attempted),
            "recall": ratio(100 * right, total),
            "attempted": ratio(100 * attempted, total),
        }


class Means(NamedTuple):
    """The mean vector of each sense.

    Attributes:
        vectors: (senses, L, W), of unit length.
        rows: for each word the rows of its senses, by their keys, the most frequent sense first.
    """

    vectors: Tensor
    rows: dict[Word, dict[str, int]]


def occurrences(source: Any, sentences: Sequence[SenseSentence], what: str) -> Iterator[tuple[int, Instance, Tensor]]:
    """For every instance, the number of its sentence, and its vectors (L, W), rounded to float16."""
    chosen = [i for i, sentence in enumerate(sentences) if sentence.instances]
    groups = [chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)]
    for group in tracked(groups, what):
        words = [sentences[i].words for i in group]
        for indices, flat in source.batches(words):
            pieces = flat.half().float().cpu().split([len(words[i]) for i in indices], dim=1)
            for i, layers in zip(indices, pieces, strict=True):  # layers: (L, T, W)
                for one in sentences[group[i]].instances:
                    yield group[i], one, layers[:, one.start : one.end].mean(dim=1)


def means(source: Any, sentences: Sequence[SenseSentence]) -> Means:
    """The mean of every sense that occurs in the sentences; an instance with several keys counts for each."""
    row = count()
    rows = {word: {key: next(row) for key, _ in keys.most_common()} for word, keys in frequencies(sentences).items()}
    sums = torch.zeros(sum(map(len, rows.values())), source.n_layers, source.width)
    for _, instance, vectors in occurrences(source, sentences, "sense means"):
        for key in instance.keys:
            sums[rows[instance.word][key]] += vectors
    return Means(F.normalize(sums, dim=-1), rows)


def nearest(known: Means, word: Word, vectors: Tensor) -> list[str] | None:
    """The nearest sense to (L, W) vectors in each layer, among equals the most frequent; None for an unknown word."""
    if not (senses := known.rows.get(word)):
        return None
    near = torch.einsum("slw,lw->ls", known.vectors[[*senses.values()]], vectors)  # (L, senses)
    equal = near >= near.max(dim=1, keepdim=True).values - TIE * vectors.norm(dim=1, keepdim=True)
    return [[*senses][i] for i in equal.int().argmax(dim=1).tolist()]  # the first among the nearest


def disambiguate(
    source: Any, train: Sequence[SenseSentence], test: Sequence[SenseSentence], first: Mapping[Word, str]
) -> list[SenseF1]:
    """The score of each layer of a source."""
    known, metrics = means(source, train), [SenseF1() for _ in range(source.n_layers)]
    for i, instance, vectors in occurrences(source, test, "answers"):
        answers = nearest(known, instance.word, vectors) or [first.get(instance.word)] * source.n_layers
        for metric, answer in zip(metrics, answers, strict=True):
            metric.add(answer, instance.keys, test[i].document or i)
    return metrics


def first_sense(test: Sequence[SenseSentence], first: Mapping[Word, str]) -> SenseF1:
    """The score of the baseline that gives every word its first sense."""
    metric = SenseF1()
    for i, sentence in enumerate(test):
        for instance in sentence.instances:
            metric.add(first.get(instance.word), instance.keys, sentence.document or i)
    return metric


# Text with senses.


def part_of_speech(tag: str) -> str:
    """n, v, a or r for a tag of the Penn Treebank or of Universal Dependencies."""
    return "r" if tag == "ADV" else POS.get(tag[:1], tag)


def check_key(key: str, path: Path, line: int) -> str:
    """A sense key; refused unless it is a lemma, "%" and a sense."""
    lemma, sign, sense = key.partition("%")
    if not (lemma and sign and sense):
        raise UserError(f"{key}: not a sense key; expected a key like bank%1:14:00::", path, line)
    return key


def read_columns(path: Path) -> Iterator[SenseSentence]:
    """The sentences of a column file."""
    for block, document in in_comments(read_blocks(path, comment="# ", minimum=5)):
        sentence = SenseSentence([row[0] for row in block.rows], [], document)
        for start, ((_, tag, lemma, *split), line) in enumerate(zip(block.rows, block.lines, strict=True)):
            if split[0] in (NONE, INSIDE):
                continue
            keys, numbers = (tuple(each.split(";")) for each in split[:2])
            for key in keys:
                check_key(key, path, line)
            if len(keys) != len(numbers):
                raise UserError(f"{len(keys)} sense keys, but {len(numbers)} numbers", path, line)
            end = start + 1
            while end < len(block.rows) and block.rows[end][3] == INSIDE:
                end += 1
            sentence.instances.append(Instance(start, end, (lemma, part_of_speech(tag)), keys, numbers, line))
        yield sentence


def read_xml(path: Path, gold: Path) -> list[SenseSentence]:
    """The sentences of an XML file, with the senses of its gold key file. The file may declare no entities."""
    keys = read_keys(gold)
    sentences: list[SenseSentence] = []
    document, is_open, seen, number = None, False, set[str](), 1
    parser: Any = XMLPullParser(("start", "end"))
    try:
        for number, line in numbered_lines(path):
            if "<!ENTITY" in line:
                raise UserError("declares an XML entity; the evaluation files have none", path, number)
            parser.feed(f"{line}\n")
            for event, element in parser.read_events():
                if event == "start" and element.tag == "text":
                    document = element.get("id")
                elif event == "start" and element.tag == "sentence":
                    sentences.append(SenseSentence([], [], document))
                elif element.tag == "sentence":
                    element.clear()  # the tree is not needed any more
                elif element.tag in ("wf", "instance"):
                    if event == "start" and (is_open or not sentences):
                        raise UserError(f"a {element.tag} element outside a sentence, or in another", path, number)
                    is_open = event == "start"
                    if not is_open:
                        _add_element(sentences[-1], element, keys, seen, path, number)
        parser.close()
    except ParseError as error:
        raise UserError(f"not XML ({expat.ErrorString(error.code)})", path, number) from None
    for name in keys.keys() - seen:
        raise UserError(f"{name}: there is no such instance in {path.name}", gold, keys[name][1])
    if not sentences:
        raise UserError("contains no sentence; expected the XML of Raganato et al. 2017", path)
    return sentences


Keys = Mapping[str, tuple[tuple[str, ...], int]]  # the keys and the line of each instance in a gold key file


def _add_element(sentence: SenseSentence, element: Any, keys: Keys, seen: set[str], path: Path, line: int) -> None:
    """Adds the words of a `wf` or `instance` element to its sentence, and the instance."""
    text, start, name = "".join(element.itertext()), len(sentence.words), element.get("id")
    words = (text.replace("_", " ") if "_" in element.get("lemma", "") else text).split()
    fault = "" if words else f"an empty {element.tag} element"
    if words and element.tag == "instance":
        if missing := [key for key in ("id", "lemma", "pos") if not element.get(key)]:
            fault = f"an instance without {' and '.join(missing)}"
        elif name in seen or name not in keys:
            fault = f"instance {name}: " + ("occurs twice" if name in seen else "has no gold key")
    if fault:
        raise UserError(fault, path, line)
    sentence.words.extend(words)
    if element.tag == "instance":
        seen.add(name)
        word = element.get("lemma"), part_of_speech(element.get("pos"))
        sentence.instances.append(Instance(start, start + len(words), word, keys[name][0], (), keys[name][1]))


def read_keys(path: Path) -> Keys:
    """A gold key file."""
    found: dict[str, tuple[tuple[str, ...], int]] = {}
    for number, line in numbered_lines(path):
        name, *keys = line.split()[:100]
        if not keys or name in found:
            raise UserError("expected the id of an instance and its sense keys, and every id once", path, number)
        found[name] = tuple(check_key(key, path, number) for key in keys), number
    return found


def read_mini(path: Path, senses: Path) -> list[SenseSentence]:
    """The sentences of a split of generated text, with the senses listed for it."""
    with open_text(path) as lines:
        sentences = [SenseSentence(line.split(), []) for line in lines]
    for line, text in numbered_lines(senses):
        split, *fields = text.split("\t")
        if line == 1 or split != path.stem:
            continue
        try:
            number, token, lemma, key = int(fields[0]), int(fields[1]), *fields[2:]
            if not (0 <= number < len(sentences) and 0 <= token < len(sentences[number].words)):
                raise ValueError
        except (ValueError, IndexError):
            problem = "expected split, sentence, token, lemma and sense of a word of the text"
            raise UserError(problem, senses, line) from None
        keys = (check_key(key, senses, line),)
        sentences[number].instances.append(Instance(token, token + 1, (lemma, ""), keys, (), line))
    return sentences


# The inventory: the first sense of each word, and all sense keys.


def first_senses(sentences: Sequence[SenseSentence]) -> dict[Word, str]:
    """The first sense of the words of a corpus, by its sense numbers; without numbers, the most frequent sense.

    A word whose sense 1 does not occur has no first sense.
    """
    instances = [instance for sentence in sentences for instance in sentence.instances]
    numbered = {each.word for each in instances if each.numbers}
    pairs = [(each.word, pair) for each in instances for pair in zip(each.keys, each.numbers, strict=False)]
    first = {word: key for word, (key, number) in pairs if number == "1"}
    counts = frequencies(sentences)
    return first | {word: keys.most_common(1)[0][0] for word, keys in counts.items() if word not in numbered}


def frequencies(sentences: Iterable[SenseSentence]) -> dict[Word, Counter[str]]:
    """The count of each sense of each word."""
    counts: dict[Word, Counter[str]] = {}
    for instance in (instance for sentence in sentences for instance in sentence.instances):
        counts.setdefault(instance.word, Counter()).update(instance.keys)
    return counts


def read_index(path: Path) -> dict[str, int]:
    """The number of each sense key in WordNet's index.sense (key, offset, sense number, count)."""
    numbers: dict[str, int] = {}
    for line, text in numbered_lines(path):
        fields = text.split()
        if len(fields) != 4 or not fields[2].isdecimal() or len(fields[2]) > 9:
            raise UserError("expected a sense key, an offset, a sense number and a count", path, line)
        numbers[check_key(fields[0], path, line)] = int(fields[2])
    return numbers

"""Text with word senses, in three formats: plain columns, the XML of Raganato et al. 2017, generated text; inventories.

Columns: word, part of speech, lemma, sense keys (joined by ";"; "-": none), sense numbers of WordNet. A multiword
expression has a row for each of its words; the rows after its first hold "=". A line "# ..." is a comment, and
"# doc = ..." begins a document.

XML: `wf` and `instance` elements in `sentence` elements, those of a document in a `text` element, and a gold key file,
an instance's id and keys in each line.

Generated: a sentence a line, and the list of senses that the mini scale writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple
from xml.parsers import expat

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import numbered_lines, open_bytes, open_text
from elmo_bench.text.columns import Block, in_comments, read_blocks

NONE, INSIDE = "-", "="
POS = {"N": "n", "V": "v", "J": "a", "A": "a", "R": "r"}  # by the first letter of tags of PTB and UD; ADV is apart
TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # of a sense key; 5 is a satellite adjective


Word = tuple[str, str]  # lemma and part of speech


class Instance(NamedTuple):
    """A word, or an expression of several, whose sense is to be found.

    Attributes:
        start, end: of its words in the sentence.
        word: lemma and part of speech (n, v, a, r), whose senses are the candidates.
        keys: the right senses; one of them is enough.
        numbers: of these senses in WordNet, 1 for the first; empty where the file has none.
        line: of the file that gives the senses.
    """

    start: int
    end: int
    word: Word
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    line: int


class SenseSentence(NamedTuple):
    """Words, those of them that have a sense, and the document that they stand in, where that is known."""

    words: list[str]
    instances: list[Instance]
    document: str | None = None


def part_of_speech(tag: str) -> str:
    """n, v, a or r of a tag of the Penn Treebank or of Universal Dependencies."""
    return "r" if tag == "ADV" else POS.get(tag[:1], tag)


# Plain columns.


def read_columns(path: Path) -> Iterator[SenseSentence]:
    """The sentences of a column file.

    Raises:
        UserError: rows of another width, a malformed sense, a number of keys that is not that of their numbers.
    """
    for block, document in in_comments(read_blocks(path, comment="# ", minimum=5)):
        starts = [i for i, row in enumerate(block.rows) if row[3] not in (NONE, INSIDE)]
        yield SenseSentence([row[0] for row in block.rows], [_instance(block, start) for start in starts], document)


def _instance(block: Block, start: int) -> Instance:
    _, tag, lemma, keys, numbers = block.rows[start][:5]
    split = tuple(keys.split(";")), tuple(numbers.split(";"))
    for key in split[0]:
        check_key(key, block.path, block.lines[start])
    if len(split[0]) != len(split[1]):
        raise UserError(f"{len(split[0])} sense keys, but {len(split[1])} numbers", block.path, block.lines[start])
    end = start + 1
    while end < len(block.rows) and block.rows[end][3] == INSIDE:
        end += 1
    return Instance(start, end, (lemma, part_of_speech(tag)), *split, block.lines[start])


def check_key(key: str, path: Path, line: int) -> None:
    """Raises `UserError` if a sense key is not a lemma, "%" and a sense."""
    lemma, sign, sense = key.partition("%")
    if not (lemma and sign and sense):
        raise UserError(f"{key}: no sense key; expected one like bank%1:14:00::", path, line)


# XML.


def read_xml(path: Path, gold: Path) -> list[SenseSentence]:
    """The sentences of an XML file, with the senses of its gold key file.

    Raises:
        UserError: not such XML, an instance without a key, a key without an instance, an id that occurs twice.
    """
    keys = read_keys(gold)
    parser = _Parser(path, keys)
    with open_bytes(path) as stream:
        parser.read(stream)
    for name in keys.keys() - parser.seen:
        raise UserError(f"{name}: there is no such instance in {path.name}", gold, keys[name][1])
    if not parser.sentences:
        raise UserError("contains no sentence; expected the XML of Raganato et al. 2017", path)
    return parser.sentences


def read_keys(path: Path) -> dict[str, tuple[tuple[str, ...], int]]:
    """The keys and the line of each instance in a gold key file. Raises `UserError` for a malformed line."""
    found: dict[str, tuple[tuple[str, ...], int]] = {}
    for number, line in numbered_lines(path):
        name, *keys = line.split()[:100]
        if not keys or name in found:
            raise UserError("expected the id of an instance and its sense keys, and every id once", path, number)
        for key in keys:
            check_key(key, path, number)
        found[name] = tuple(keys), number
    return found


class _Parser:
    """Collects sentences from the events of a streaming parser; entities of the file's own are refused."""

    def __init__(self, path: Path, keys: Mapping[str, tuple[tuple[str, ...], int]]):
        self.path, self.keys = path, keys
        self.sentences: list[SenseSentence] = []
        self.seen: set[str] = set()
        self._attributes: dict[str, str] | None = None  # of the open wf or instance
        self._text = ""
        self._document: str | None = None
        self._parser = expat.ParserCreate("UTF-8")  # whatever the file declares
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity

    def read(self, stream: IO[bytes]) -> None:
        """Parses the file, piece by piece. Raises `UserError` naming its line."""
        try:
            self._parser.ParseFile(stream)
        except expat.ExpatError as error:
            raise UserError(f"not XML ({expat.ErrorString(error.code)})", self.path, error.lineno) from None

    def _fault(self, message: str) -> UserError:
        return UserError(message, self.path, self._parser.CurrentLineNumber)

    def _entity(self, *declared: object) -> None:
        raise self._fault("declares an entity of its own; the evaluation files have none")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "text":
            self._document = attributes.get("id")
        elif name == "sentence":
            self.sentences.append(SenseSentence([], [], self._document))
        elif name in ("wf", "instance"):
            if not self.sentences or self._attributes is not None:
                raise self._fault(f"a {name} element outside a sentence, or in another")
            self._attributes, self._text = {**attributes, "": name}, ""

    def _characters(self, text: str) -> None:
        if self._attributes is not None:
            self._text += text

    def _end(self, name: str) -> None:
        if name not in ("wf", "instance") or self._attributes is None:
            return
        attributes, self._attributes = self._attributes, None
        words = (self._text.replace("_", " ") if "_" in attributes.get("lemma", "") else self._text).split()
        if not words:
            raise self._fault(f"an empty {name} element")
        sentence = self.sentences[-1]
        start = len(sentence.words)
        sentence.words.extend(words)
        if name == "instance":
            sentence.instances.append(self._sense(attributes, start, start + len(words)))

    def _sense(self, attributes: dict[str, str], start: int, end: int) -> Instance:
        if lacking := [key for key in ("id", "lemma", "pos") if not attributes.get(key)]:
            raise self._fault(f"an instance without {' and '.join(lacking)}")
        name = attributes["id"]
        if name in self.seen or name not in self.keys:
            raise self._fault(f"instance {name}: " + ("occurs twice" if name in self.seen else "has no gold key"))
        self.seen.add(name)
        keys, line = self.keys[name]
        return Instance(start, end, (attributes["lemma"], part_of_speech(attributes["pos"])), keys, (), line)


# Generated text.


def read_mini(path: Path, senses: Path) -> list[SenseSentence]:
    """The sentences of a split of generated text, with the senses that are listed for it.

    Raises:
        UserError: a malformed line of the list, or a place that the text does not have.
    """
    with open_text(path) as lines:
        sentences = [SenseSentence(line.split(), []) for line in lines]
    for number, line in numbered_lines(senses):
        split, *fields = line.split("\t")
        if number > 1 and split == path.stem:
            _add(sentences, fields, senses, number)
    return sentences


def _add(sentences: list[SenseSentence], fields: list[str], path: Path, line: int) -> None:
    try:
        sentence, token, lemma, key = int(fields[0]), int(fields[1]), *fields[2:]
        if not (0 <= sentence < len(sentences) and 0 <= token < len(sentences[sentence].words)):
            raise ValueError
    except ValueError:
        raise UserError("expected split, sentence, token, lemma and sense of a word of the text", path, line) from None
    check_key(key, path, line)
    sentences[sentence].instances.append(Instance(token, token + 1, (lemma, ""), (key,), (), line))


# The inventory: which sense of a word comes first, and which sense keys there are.


def first_senses(sentences: Sequence[SenseSentence]) -> dict[Word, str]:
    """The first sense of the words of a corpus, by its sense numbers; where it has none, the most frequent sense.

    A word whose sense 1 does not occur has none.
    """
    instances = [instance for sentence in sentences for instance in sentence.instances]
    numbered = {each.word for each in instances if each.numbers}
    pairs = [(each.word, pair) for each in instances for pair in zip(each.keys, each.numbers, strict=False)]
    first = {word: key for word, (key, number) in pairs if number == "1"}
    counts = frequencies(sentences)
    return first | {word: keys.most_common(1)[0][0] for word, keys in counts.items() if word not in numbered}


def frequencies(sentences: Iterable[SenseSentence]) -> dict[Word, Counter[str]]:
    """How often each word has each of its senses."""
    counts: dict[Word, Counter[str]] = {}
    for sentence in sentences:
        for instance in sentence.instances:
            counts.setdefault(instance.word, Counter()).update(instance.keys)
    return counts


def read_index(path: Path) -> dict[str, int]:
    """The number of each sense key in WordNet's index.sense (key, offset, sense number, count).

    Raises:
        UserError: a malformed line.
    """
    numbers: dict[str, int] = {}
    for line, text in numbered_lines(path):
        fields = text.split()
        if len(fields) != 4 or not fields[2].isdecimal() or len(fields[2]) > 9:
            raise UserError("expected a sense key, an offset, a sense number and a count", path, line)
        check_key(fields[0], path, line)
        numbers[fields[0]] = int(fields[2])
    return numbers


def first_of_index(numbers: dict[str, int]) -> dict[Word, str]:
    """The first sense of every word of an inventory."""
    return {_word(key): key for key, number in numbers.items() if number == 1}


def _word(key: str) -> Word:
    lemma, _, sense = key.partition("%")
    return lemma, TYPES.get(sense[:1], sense[:1])


def check_keys(sentences: Sequence[SenseSentence], numbers: dict[str, int], inventory: Path, gold: Path) -> None:
    """Raises `UserError` naming the first sense key of a corpus that the inventory lacks."""
    for sentence in sentences:
        for instance in sentence.instances:
            for key in instance.keys:
                if key not in numbers:
                    raise UserError(f"the sense key {key} is not in {inventory.name}; use the inventory of "
                                    "the same WordNet", gold, instance.line)  # fmt: skip

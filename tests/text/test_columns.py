"""CoNLL column files: layouts, blocks with line numbers, faults by file and line; tags and their schemes."""

import gzip
import lzma
import random
from pathlib import Path

import pytest

from elmo_bench.text.columns import read_blocks
from elmo_bench.text.tags import (
    SCHEMES,
    TagError,
    TaggedFile,
    constraints,
    convert,
    exceptions,
    follows,
    labels,
    normalised,
    read_tags,
    scheme_of,
    spans,
)
from tests.fakes import at, cases, refuses


def rows(path: Path, **options) -> list[list[list[str]]]:
    return [block.rows for block in read_blocks(path, **options)]


def test_blocks_hold_rows_and_line_numbers(file):
    path = file("-DOCSTART- -X- O\n\nIda NNP I-PER\nsings VBZ O\n\n\n \t\nIn IN O\nRoma NNP I-LOC")
    blocks = list(read_blocks(path))
    assert [block.lines for block in blocks] == [[3, 4], [8, 9]]
    assert [block.column(0) for block in blocks] == [["Ida", "sings"], ["In", "Roma"]]
    assert [block.column(-1) for block in blocks] == [["I-PER", "O"], ["O", "I-LOC"]]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bytes])
def test_compressed_files_carriage_returns_and_byte_order_mark(file, compress):
    suffix = {gzip.compress: ".gz", lzma.compress: ".xz"}.get(compress, "")
    path = file(compress(b"\xef\xbb\xbfIda\tB-PER\r\nsings\tO\r\n\r\n"), "file.conll" + suffix)
    assert rows(path) == [[["Ida", "B-PER"], ["sings", "O"]]]


def test_tabs_keep_spaces_and_unicode_spaces_part_nothing(file):
    assert rows(file("New Roma\tB-LOC\nis O\tO\n")) == [[["New Roma", "B-LOC"], ["is O", "O"]]]
    assert rows(file("10\u00a0000 \t O\n\u2028\tO\n")) == [[["10\u00a0000", "O"], ["\u2028", "O"]]]
    assert rows(file("10\u00a0000   O\na\x85b O\n")) == [[["10\u00a0000", "O"], ["a\x85b", "O"]]]


def test_comments_only_where_asked_for(file):
    path = file("#begin document (x)\n# tag O\nIda\tO\n\n#end document\n")
    blocks = list(read_blocks(path, comment="#"))
    assert [block.rows for block in blocks] == [[["Ida", "O"]]]
    assert blocks[0].comments == ["#begin document (x)", "# tag O"]
    assert rows(file("#\tO\nIda\tO\n")) == [[["#", "O"], ["Ida", "O"]]]


def test_a_word_that_begins_as_a_comment_is_none_between_tabs_and_told_between_spaces(file, capsys):
    tweet = "# id = 1\n#\tO\nIda\tB-PER\n#hashtag\tO\n"
    assert rows(file(tweet), comment="#") == [[["#", "O"], ["Ida", "B-PER"], ["#hashtag", "O"]]]
    assert capsys.readouterr().err == ""
    assert rows(file(tweet.replace("\t", " ")), comment="#") == [[["Ida", "B-PER"]]]
    assert "2 of the comments have as many columns as the rows, the first at line 2" in capsys.readouterr().err


def test_widths_by_sentence(file):
    path = file("a b\n\nc d e\nf g h\n")
    assert [len(block.rows[0]) for block in read_blocks(path, widths="sentence")] == [2, 3]
    with refuses("3 columns, but the lines before have 2", f"{path}:3: "):
        list(read_blocks(path))


@cases(r"""
    content                           | line | words
    "a O\nb\n"                        | 2    | 1 columns, but
    "a\tO\nb O\n"                     | 2    | 1 columns, but
    "a\tO\n\tO\n"                     | 2    | column 0 .* is empty
    "a\n"                             | 1    | at least 2
    "a O\n\u00ff O\n"                 | 2    | UTF-8
    ""                                | null | no sentence
    "\n -DOCSTART-\n\n-DOCSTART- O\n" | 2    | 1 column
    "\n\n-DOCSTART- O\n\n"            | null | no sentence
""")
def test_malformed_files_are_named_with_their_line(file, content, line, words):
    path = file(content.encode("latin-1"))
    with refuses(words, at(path, line)):
        list(read_blocks(path, minimum=2))


def test_missing_and_damaged_files(file, tmp_path):
    whole = gzip.compress(b"a O\n" * 1000)
    changed = whole[:30] + b"\xff\xff" + whole[32:]
    damaged = {"cut.gz": whole[:-20], "changed.gz": changed, "wrong.gz": b"no archive", "wrong.xz": b"no archive"}
    files = [file(content, name) for name, content in damaged.items()]
    for path in (tmp_path / "nowhere", tmp_path, *files):
        with refuses(f"{path}: "):
            list(read_blocks(path))


# Tags.


def test_conversions_between_schemes():
    same = {
        "iob1": "I-LOC I-LOC B-LOC I-PER O I-PER",
        "iob2": "B-LOC I-LOC B-LOC B-PER O B-PER",
        "bioes": "B-LOC E-LOC S-LOC S-PER O S-PER",
    }
    for tags in same.values():
        for scheme, expected in same.items():
            assert convert(tags.split(), scheme) == expected.split()


@cases("""
    scheme | good              | bad       | index
    iob1  | I-A B-A I-B       | I-A O B-A | 2
    iob2  | B-A I-A B-A       | B-A I-B   | 1
    bioes | B-A I-A E-A S-A O | B-A O     | 0
    bioes | S-A               | S-A B-A   | 1
    iob2  | O                 | S-A       | 0
""")
def test_a_tag_against_the_scheme_asked_for_is_named(scheme, good, bad, index):
    read(scheme, good)
    with pytest.raises(TagError, match=f"{bad.split()[index]}' does not follow {scheme}") as error:
        read(scheme, bad)
    assert error.value.index == index


def test_spans_are_those_of_seqeval_whatever_the_tags():
    from seqeval.metrics.sequence_labeling import get_entities

    draw = random.Random(5)
    kinds = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("A", "B-C"))]
    for _ in range(5000):
        tags = draw.choices(kinds, k=draw.randint(0, 7))
        assert [(kind, start, end - 1) for kind, start, end in spans(tags)] == get_entities(tags), tags


def test_a_span_is_an_exception_exactly_where_the_sentence_breaks_the_scheme():
    draw = random.Random(3)
    kinds = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "AB")]
    seen = set()
    for _ in range(3000):
        tags = draw.choices(kinds if draw.random() < 0.5 else kinds[:5], k=draw.randint(1, 5))
        for scheme in SCHEMES:
            broken = exceptions(tags, spans(tags), scheme)
            steps = zip(["O", *tags], [*tags, "O"], strict=True)
            assert bool(broken) is not all(follows(scheme, one, other) for one, other in steps), (tags, scheme)
            seen.add((scheme, bool(broken)))
    assert len(seen) == 6
    assert exceptions("I-A O B-A I-A B-B I-A".split(), spans("I-A O B-A I-A B-B I-A".split()), "iob1") == [2, 4]


def read(scheme: str, *sentences: str) -> TaggedFile:
    return read_tags(map(str.split, sentences), scheme)


def test_a_file_settles_on_the_scheme_that_all_but_one_in_a_hundred_entities_follow():
    assert read("auto", "O I-A I-A").spans == [[("A", 1, 3)]]
    regular = {"iob1": "I-A I-A", "iob2": "B-A I-A", "bioes": "B-A E-A"}
    for scheme, sentence in regular.items():
        assert read("auto", *[sentence] * 3)[1:] == (scheme, [])
        odd = "O I-A" if scheme == "iob2" else "O B-A"
        assert read("auto", odd, *[sentence] * 100)[1:] == (scheme, [(0, 1)])
        with pytest.raises(TagError, match=r"of its 100 entities .* in 1 \(1\.0%\).* fewer than 1 in 100"):
            read("auto", odd, *[sentence] * 99)
    assert read("auto", "O O").exceptions == []


def test_a_file_of_two_schemes_is_refused_where_the_last_of_them_fails():
    with pytest.raises(TagError, match=r"iob1 in 2 \(66\.7%\), iob2 in 1 \(33\.3%\), bioes in 3 \(100\.0%\)") as error:
        read("auto", "B-A I-A", "O I-A", "B-A")
    assert (error.value.sentence, error.value.index) == (1, 1)


def test_a_scheme_that_is_asked_for_allows_no_exception():
    with pytest.raises(TagError, match="does not follow iob2") as error:
        read("iob2", *["B-A"] * 500, "O I-A")
    assert (error.value.sentence, error.value.index) == (500, 1)
    assert read("conlleval", "O B-A O I-A E-A", "B-A")[0::2] == ([[("A", 1, 2), ("A", 3, 5)], [("A", 0, 1)]], [])
    assert read("bioes", "U-A B-A L-A").spans == [[("A", 0, 1), ("A", 1, 3)]]


@cases("""
    tag
    X-PER
    PER
    B
    B-
    -PER
    o
    ""
    BI-PER
    PER-B
    _
""")
def test_unknown_tags(tag):
    with pytest.raises(ValueError, match="tag"):
        normalised([tag])


def test_labels_and_constraints():
    names = labels(["PER", "LOC", "PER"], "bioes")
    assert names == "O B-LOC I-LOC E-LOC S-LOC B-PER I-PER E-PER S-PER".split()
    assert (scheme_of(names), scheme_of(labels(["A"], "iob2"))) == ("bioes", "iob2")
    start, pairs, end = constraints(names, "bioes")
    assert [name for name, ok in zip(names, start, strict=True) if ok] == "O B-LOC S-LOC B-PER S-PER".split()
    assert [name for name, ok in zip(names, end, strict=True) if ok] == "O E-LOC S-LOC E-PER S-PER".split()
    assert [name for name, ok in zip(names, pairs[names.index("I-LOC")], strict=True) if ok] == ["I-LOC", "E-LOC"]
    assert pairs[names.index("E-LOC")] == pairs[0] == start

"""CoNLL-2012: documents, predicates with their columns, clusters, folders and lists; faults by file and line."""

from pathlib import Path

import pytest

from elmo_bench.text import brackets
from elmo_bench.text.columns import read_blocks
from elmo_bench.text.conll2012 import find_files, read_documents
from elmo_bench.text.tags import Span
from tests.fakes import at, cases, refuses, table

# As OntoNotes writes it: spaces, a sense without a frame (case), a speaker, clusters that nest and cross.
GOLD = """\
#begin document (bc/made/00/made_0001); part 000
bc/made/00/made_0001   0   0    Ida   NNP  (TOP(S(NP*)    -    -   -   Host#1  (PERSON)  (ARG0*)      *    (0)
bc/made/00/made_0001   0   1  asked   VBD        (VP*   ask   02   1   Host#1       *       (V*)      *      -
bc/made/00/made_0001   0   2    Bo    NNP      (NP(NP*    -    -   -   Host#1  (PERSON)  (ARG2*   (ARG0*   (1|(2
bc/made/00/made_0001   0   3  to      TO         (VP*     -    -   -   Host#1       *         *)     *)    2)
bc/made/00/made_0001   0   4  sing    VB           *    sing   01  -   Host#1       *     (ARG1*)   (V*)   (3|1)
bc/made/00/made_0001   0   5  case    NN        *))))) case    -   3   Host#1       *         *   (ARG1*)  3)

bc/made/00/made_0001   0   0    Yes    UH   (TOP*)   -   -   -   Bo   *   -

#end document
#begin document (bc/made/00/made_0001); part 001
bc/made/00/made_0001   1   0    Rain    NN   (TOP*)   -   -   -   -   *   (0)

#end document
"""


def test_a_document_with_everything(file):
    first, second = read_documents(file(GOLD))
    assert (first.name, first.part, first.genre, first.line) == ("bc/made/00/made_0001", "000", "bc", 1)
    assert (second.part, second.line, len(second.sentences)) == ("001", 12, 1)
    sentence = first.sentences[0]
    assert sentence.words == "Ida asked Bo to sing case".split()
    assert sentence.pos[1] == "VBD"
    assert sentence.lines == [2, 3, 4, 5, 6, 7]
    assert [s.speakers[0] for s in first.sentences] == ["Host#1", "Bo"]
    ask, sing = sentence.predicates()
    assert (ask.index, ask.lemma, ask.frame) == (1, "ask", "02")
    assert ask.arguments == [Span("ARG0", 0, 1), Span("V", 1, 2), Span("ARG2", 2, 4), Span("ARG1", 4, 5)]
    assert (sing.index, sing.arguments[0]) == (4, Span("ARG0", 2, 4))
    assert first.sentences[1].predicates() == []
    assert first.clusters() == [[[0, 0]], [[2, 4]], [[2, 3]], [[4, 5]]]
    assert second.clusters() == [[[0, 0]]]


def test_lemmas_without_frames_are_predicates_where_the_columns_say_so(file):
    text = GOLD.replace("ask   02", "ask   -").replace("sing   01", "sing   -").replace("case    -", "-    -")
    sentence = next(read_documents(file(text))).sentences[0]
    assert [(p.index, p.frame) for p in sentence.predicates()] == [(1, "-"), (4, "-")]


def test_columns_in_another_order_than_their_predicates_are_an_error(file):
    swapped = GOLD.replace("(V*)      *      -\n", "*      (V*)      -\n").replace("(ARG1*)   (V*)", "(V*)   (ARG1*)")
    sentence = next(read_documents(file(swapped))).sentences[0]
    with refuses(":3: the column of the predicate 'asked' has its V at 'sing'"):
        sentence.predicates()


def test_a_frame_without_a_column_is_no_predicate(file):
    """The references take for predicates what a column marks as its V."""
    sentence = next(read_documents(file(GOLD.replace("case    -", "case    01")))).sentences[0]
    assert [(p.lemma, p.index) for p in sentence.predicates()] == [("ask", 1), ("sing", 4)]
    alone = GOLD.replace("Yes    UH   (TOP*)   -   -", "Yes    UH   (TOP*)   yes   01")
    assert next(read_documents(file(alone))).sentences[1].predicates() == []


def test_a_last_column_of_arguments_is_none_of_coreference(file):
    lacking = "\n".join(line.rsplit(maxsplit=1)[0] if line.startswith("bc") else line for line in GOLD.splitlines()[:7])
    with refuses(":6: the last column has arguments, so the coreference column is missing"):
        next(read_documents(file(f"{lacking}\n\n#end document\n"))).sentences[0].predicates()


def test_columns_without_marks_are_one_document(file):
    rows = "\n".join(line for line in GOLD.splitlines()[:10] if not line.startswith("#"))
    (document,) = read_documents(file(rows))
    assert (document.name, document.part, document.line) == ("bc/made/00/made_0001", "0", 1)
    assert [len(sentence.words) for sentence in document.sentences] == [6, 1]


def test_sentences_end_where_documents_end_even_without_an_empty_line(file):
    documents = read_documents(file(GOLD.replace("\n\n#", "\n#")))
    assert [[len(s.words) for s in d.sentences] for d in documents] == [[6, 1], [1]]


def test_files_are_streamed(file):
    path = file(GOLD + "#begin document (cut); part 000\n")
    documents = read_documents(path)
    assert [next(documents).part, next(documents).part] == ["000", "001"]
    with refuses("cut off"):
        next(documents)


def read(path: Path) -> None:
    """The predicates and clusters of all documents."""
    for document in read_documents(path):
        for sentence in document.sentences:
            sentence.predicates()
        document.clusters()


BAD = table(r"""
    (ARG2*   (ARG0*        | *   (ARG0*      | 5  | not open
    *)     *)              | *     *)        | 4  | never closed
    (ARG1*)   (V*)         | (ARG1*)   V)    | 6  | not a bracket cell
    *)     *)              | *ARG0)     *)   | 5  | 'ARG2' is open
    sing   01              | sing   01 x     | 6  | 15 columns
    "(V*)   (3|1)\nbc/made/00/made_0001   0   5  case    NN        *))))) case    -" | \
        "*   (3|1)\nbc/made/00/made_0001   0   5  case    NN        *))))) case    01" | 6 | 'sing' has no column
    ask   02               | "-   -"         | 2  | 1 predicates but 2 columns
    made_0001); part 001   | made_0001); part 0 | 12 | again
    0   2    Bo            | 0   0    Bo     | 4  | numbered from 0 again
    "#end document\n#begin" | #begin         | 11 | before the one at line 1 ends
    "#end document\n#begin" | "#end document\n#end document\n#begin" | 12 | without its '#begin document'
    "#begin document (bc/made/00/made_0001); part 001\n" | "" | 12 | outside any document
    #begin document (bc/made/00/made_0001); part 001 | #begin documents | 12 | expected '#begin
    Bo   *   -             | Bo   *          | 9  | at least 12
    (1|(2                  | (1|2            | 4  | not a cluster cell|not open
    (3|1)                  | (3|4)           | 6  | cluster 4 that is not open
    " 3)\n"                | " -\n"          | 6  | cluster 3 is never closed
    (1|(2                  | (1|((2          | 4  | not a cluster cell
    "*      -\n"           | "*      (7)|(7)\n" | 3 | cluster 7 has this word as a mention twice
""")


@pytest.mark.parametrize("before, after, line, message", BAD)
def test_faults_are_named_by_file_and_line(file, before, after, line, message):
    assert GOLD.count(before) == 1
    path = file(GOLD.replace(before, after))
    with refuses(message, at(path, line)):
        read(path)


def test_one_part_in_two_files(file):
    paths = [file(GOLD, "a.conll"), file(GOLD, "b.conll")]
    with refuses(r"again; the first begins at .*a\.conll:1"):
        list(read_documents(paths))


def test_cells_of_arguments():
    nested = "(A(B* *B)A) (A(A*)) *".split()
    assert brackets.spans(nested) == [Span("A", 0, 2), Span("B", 0, 2), Span("A", 2, 3), Span("A", 2, 3)]
    spans = [Span("ARG0", 0, 1), Span("C-ARG0", 2, 5), Span("V", 1, 2)]
    assert brackets.write_spans(spans, 6) == "(ARG0*) (V*) (C-ARG0* * *) *".split()
    assert brackets.spans(brackets.write_spans(spans, 6)) == sorted(spans, key=lambda span: span.start)


def test_cells_of_clusters():
    crossing = "(0|(1|(2) - 0)|(0|(0 1)|0) 0)|(10)".split()
    assert brackets.mentions(crossing) == [
        Span("0", 0, 5), Span("1", 0, 4), Span("2", 0, 1), Span("0", 2, 4), Span("0", 2, 3), Span("10", 4, 5),
    ]  # fmt: skip
    again = brackets.write_mentions(brackets.mentions(crossing), 5)
    assert sorted(brackets.mentions(again)) == sorted(brackets.mentions(crossing))


def test_chains_come_in_the_order_in_which_the_reference_scorer_meets_them():
    one, two = [Span("1", 0, 2)], [Span("2", 0, 1), Span("2", 2, 3)]
    assert brackets.chains(["(1|(2)", "1)", "(2)"]) == [two, one]  # a mention of one word first
    assert brackets.chains(["(1(0", "-", "0)1)(2)"]) == [[Span("1", 0, 3)], [Span("0", 0, 3)], [Span("2", 2, 3)]]
    with pytest.raises(brackets.BracketError, match="never closed in its document"):
        brackets.chains(["(1"])


def test_splits_by_folder_by_list_and_by_file(file, tmp_path):
    for name in "s/b/2.v4_gold_conll s/b/1.v4_gold_conll.gz s/a.conll.xz s/b/2.v4_auto_conll s/x.onf".split():
        file(GOLD, name)
    file("b/2\nb/1\n\n", "s/test.id")
    file("s/b/1.v4_gold_conll.gz\ns/a.conll.xz\n", "dev.list")
    folder = tmp_path / "s"
    assert [path.name for path in find_files(folder)] == ["a.conll.xz", "1.v4_gold_conll.gz", "2.v4_gold_conll"]
    assert [path.name for path in find_files("test.id", folder)] == ["2.v4_gold_conll", "1.v4_gold_conll.gz"]
    assert find_files(tmp_path / "dev.list") == [folder / "b" / "1.v4_gold_conll.gz", folder / "a.conll.xz"]
    assert find_files(["s/b", "s/a.conll.xz"], tmp_path)[-1] == folder / "a.conll.xz"
    assert find_files(folder / "none.conll") == [folder / "none.conll"]  # reading it says that it is not there
    assert len(list(read_documents(find_files(folder / "a.conll.xz")))) == 2
    for text in (GOLD, GOLD.split("\n", 1)[1].split("\n#")[0]):
        path = file(f"\n{text}", "columns.txt")  # no list
        assert find_files(path) == [path]


@cases(r"""
    name     | text              | line | message
    s/x.list | "../dev.list\n"   | 1    | leads out
    s/x.list | "\n/etc/passwd\n" | 2    | leads out
    s/x.list | "\nb/1\n"         | 2    | no such file
    s/x.list | "\n"              | null | list of files is empty
    s/x.onf  | ""                | null | no file below
""")
def test_folders_and_lists_without_what_they_name(file, name, text, line, message):
    path = file(text, name)
    with refuses(message, at("", line)):
        find_files(path if path.suffix == ".list" else path.parent)


def test_comments_that_part_sentences(file):
    blocks = list(read_blocks(file("#a\nx 1\n#b\ny 2\n\n#c\n"), comment="#", apart=True))
    assert [[block.lines, block.rows or block.comments] for block in blocks] == table(r"""
        [1] | ["#a"]
        [2] | [["x", "1"]]
        [3] | ["#b"]
        [4] | [["y", "2"]]
        [6] | ["#c"]
    """)

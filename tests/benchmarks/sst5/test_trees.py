"""Trees from lines, and what is said of lines that are none."""

import pytest

from elmo_bench.system.errors import UserError
from tasks.sst5.metric import Node, Tree, TreeError, read_trees


def test_a_tree_gives_its_words_and_phrases_the_sentence_last():
    words, nodes = Tree.parse("(3 (2 a) (4 (3 rather) (4 fine)))\n")
    assert words == ["a", "rather", "fine"]
    assert nodes == [Node("2", 0, 1), Node("3", 1, 2), Node("4", 2, 3), Node("4", 1, 3), Node("3", 0, 3)]
    assert Tree.parse("(2 word)") == (["word"], [Node("2", 0, 1)])
    assert Tree.parse("(1(0 not)(3 good))").words == ["not", "good"]
    assert Tree.parse("(S (1 a) (B b) (0 c))").nodes[-1] == Node("S", 0, 3)
    assert Tree.parse("(2 1\u00a01\\/2)").words == ["1\u00a01\\/2"]  # a no-break space is part of a word


def test_a_deep_tree_needs_no_stack():
    assert len(Tree.parse("(1 " * 5000 + "w" + ")" * 5000).nodes) == 5000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("(3 (2 a) (4 gem)", "1 bracket"),
        ("(3 (2 a) (4 gem)))", "after the end"),
        ("(3 (2 a)) (4 gem)", "after the end"),
        (") (2 a)", "not open"),
        ("(3 (2 a) gem)", "beside"),
        ("(3 gem (2 a))", "beside"),
        ("(3 fine gem)", "beside"),
        ("((2 a) (4 gem))", "without a label"),
        ("(2)", "without a word"),
        ("(2 a) (", "after the end"),
        ("(3 (", "without a label"),
        ("a fine gem", "not a tree"),
        ("   ", "not a tree"),
    ],
)
def test_a_line_that_is_no_tree_is_refused(text, what):
    with pytest.raises(TreeError, match=what):
        Tree.parse(text)


def test_a_file_names_the_line_at_fault(file):
    path = file("(2 a)\n\n(3 (2 a) (4 gem))\n(3 (2 a) (4 gem)\n")
    with pytest.raises(UserError, match="1 bracket") as caught:
        list(read_trees(path))
    assert str(caught.value).startswith(f"{path}:4: ")
    path.write_text("(2 a)\n\n(3 (2 a) (4 gem))\n")
    assert [line for line, _ in read_trees(path)] == [1, 3]
    path.write_text("\n")
    with pytest.raises(UserError, match="contains no tree"):
        list(read_trees(path))

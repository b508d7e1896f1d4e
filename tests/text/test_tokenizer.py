"""Words that know their characters, sentences, and the words that cover a stretch of characters."""

import random
from itertools import pairwise

import pytest

from elmo_bench.text.tokenizer import covering, sentence_lengths, words
from tests.fakes import cases


def forms(text: str) -> list[str]:
    return [word.form for word in words(text)]


@cases(r"""
    text                                               | expected
    Ida's dog didn't bark.                             | Ida 's dog did n't bark .
    It cost US$3.50 (or 1,000 yen)!                    | It cost US $ 3.50 ( or 1,000 yen ) !
    "Dr. Bell of the U.S. left at 5 p.m.; he\u2019ll be back" | Dr. Bell of the U.S. left at 5 p.m. ; he 'll be back
    a 1,000-mile north/south line – or—two             | a 1,000 - mile north / south line – or — two
    “No.” It is no.                                    | " No . " It is no .
    well... wait--what?                                | well ... wait -- what ?
    Zoë_x 東京 ½                                         | Zoë _ x 東京 ½
""")
def test_words(text, expected):
    assert " ".join(forms(text)) == expected


def test_no_character_is_lost_and_each_word_stands_where_it_says():
    draw = random.Random(5)
    pieces = [*"a Dr. U.S. 1,5 n't 's \u2019 “ - -- ... é \u0301 _ ½ ''".split(), " ", "\n"]
    for _ in range(500):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(30)))
        cut = words(text, apart=True)
        straight = text.translate(str.maketrans("\u2019“", "'\""))
        assert all(straight[word.start : word.end] == word.form for word in cut)
        assert all(one.end <= two.start for one, two in pairwise(cut))
        covered = {i for word in cut for i in range(word.start, word.end)}
        assert all(text[i].isspace() for i in range(len(text)) if i not in covered)
        assert sum(sentence_lengths(cut)) == len(cut)
        assert 0 not in sentence_lengths(cut)


@cases(r"""
    text                                      | sentences
    One. Two! Three? 4 is so.                 | ["One .", "Two !", "Three ?", "4 is so ."]
    He said "no." Then (she left.) All wept.  | ["He said \" no . \"", "Then ( she left . )", "All wept ."]
    Dr. Bell met J. R. Ames. in Rome.         | ["Dr. Bell met J . R . Ames . in Rome ."]
    The U.S. Army left at 3.5 p.m. on Monday. | ["The U.S. Army left at 3.5 p.m. on Monday ."]
    no end                                    | ["no end"]
    ""                                        | []
""")
def test_sentences(text, sentences):
    cut, begin = words(text), 0
    for length, expected in zip(sentence_lengths(cut), sentences, strict=True):
        assert " ".join(word.form for word in cut[begin : begin + length]) == expected
        begin += length


def test_covering_words_against_looking_at_each():
    text = " The 1,000-mile  road (of Ida's) "
    cut = words(text)
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            touched = [i for i, word in enumerate(cut) if word.start < end and word.end > start]
            if not touched:
                with pytest.raises(ValueError, match="no word"):
                    covering(cut, start, end)
                continue
            first, last = cut[touched[0]], cut[touched[-1]]
            whole = first.start >= start and last.end <= end
            assert covering(cut, start, end) == (touched[0], touched[-1], whole)

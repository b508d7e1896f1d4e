"""Table 5: text with senses in three formats, sense means, the official score."""

import json
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from elmo_bench.analysis import wsd
from elmo_bench.analysis.study import Score
from elmo_bench.analysis.wsd import (
    Instance,
    SenseF1,
    SenseSentence,
    disambiguate,
    first_sense,
    means,
    nearest,
    read_columns,
    read_mini,
    read_xml,
)
from elmo_bench.commands.analysis import Wsd
from elmo_bench.metrics.accuracy import Accuracy
from elmo_bench.records import studies
from elmo_bench.reporting.study_tables import difference_text, of_study
from tests.fakes import cases, refuses
from tests.tiny_bilm import exported, overrides

BANK = "bank%1:17:01::", "bank%1:14:00::"
COLUMNS = f"""# doc = one
The\tDT\t-\t-\t-
bank\tNN\tbank\t{BANK[0]}\t1
has\tVB\thave\thave%2:40:00::;have%2:42:00::\t1;2
a\tDT\t-\t-\t-
ferry\tNN\tferry_boat\tferry_boat%1:06:00::\t1
boat\tNN\t=\t=\t=
.\tPUNCT\t-\t-\t-

A\tDT\t-\t-\t-
bank\tNN\tbank\t{BANK[1]}\t2
lends\tVB\tlend\tlend%2:40:00::\t1
.\tPUNCT\t-\t-\t-
"""
XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="own">
<text id="d0">
<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="bank" pos="NOUN">bank</instance>
<wf lemma="be" pos="VERB">is</wf>
<instance id="d0.s0.t1" lemma="wide_awake" pos="ADJ">wide awake</instance>
<wf lemma="&amp;" pos=".">&amp;</wf>
</sentence>
</text>
</corpus>
"""
GOLD = f"d0.s0.t0 {BANK[0]} {BANK[1]}\nd0.s0.t1 wide_awake%5:00:00:awake:00\n"


class Source:
    """Layers that are given: (L, W) for each word form."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.n_layers, self.width = next(iter(vectors.values())).shape

    def batches(self, sentences):
        for i in reversed(range(len(sentences))):
            yield [i], torch.stack([self.vectors[word] for word in sentences[i]], dim=1)


def of_word(word: str, *keys: str, numbers: tuple[str, ...] = ()) -> Instance:
    """Where it is the first word of a sentence."""
    return Instance(0, 1, (word, "n"), keys, numbers, 1)


def malformed(match, read, *arguments):
    """The error is one line."""
    with refuses(match):
        list(read(*arguments))


def test_columns_give_expressions_and_all_keys(file):
    one, two = read_columns(file(COLUMNS, "a.tsv"))
    assert one.words == "The bank has a ferry boat .".split()
    assert [(i.start, i.end, i.word) for i in one.instances] == [
        (1, 2, ("bank", "n")), (2, 3, ("have", "v")), (4, 6, ("ferry_boat", "n")),
    ]  # fmt: skip
    assert one.instances[1].keys == ("have%2:40:00::", "have%2:42:00::")
    assert (two.instances[0].numbers, two.instances[0].line) == (("2",), 11)
    assert (one.document, two.document) == ("one", "one")


@cases(r"""
    old                | new             | line | match
    "A\tDT\t-\t-\t-\n" | "A\tDT\t-\t-\n" | 10 | columns
    lend%2:40:00::     | lend            | 12 | not a sense key
    ;have%2:42:00::    | ""              | 4  | 1 sense keys, but 2 numbers
""")
def test_a_wrong_row_of_columns_is_named(file, old, new, line, match):
    path = file(COLUMNS.replace(old, new), "a.tsv")
    malformed(rf"a\.tsv:{line}: .*{match}", read_columns, path)


def test_xml_and_its_gold_keys(file):
    (sentence,) = read_xml(file(XML, "a.xml"), file(GOLD, "a.txt"))
    assert (sentence.words, sentence.document) == ("The bank is wide awake &".split(), "d0")
    assert sentence.instances == [
        Instance(1, 2, ("bank", "n"), BANK, (), 1),
        Instance(3, 5, ("wide_awake", "a"), ("wide_awake%5:00:00:awake:00",), (), 2),
    ]


@cases(r"""
    before  | after                                        | keys | match
    </text> | ""                                           | 2    | a\.xml:12: not XML
    s0.t1   | s0.t1                                        | 1    | a\.xml:8: instance d0\.s0\.t1: has no gold key
    s0.t1   | s0.t0                                        | 2    | a\.xml:8: instance d0\.s0\.t0: occurs twice
    s0.t1   | s0.t1                                        | 3    | a\.txt:3: d9\.t0: there is no such instance
    <corpus | <!DOCTYPE c [<!ENTITY e "eee">]><corpus      | 2    | a\.xml:2: declares an XML entity
    >bank<  | ><                                           | 2    | a\.xml:6: an empty instance
""")
def test_wrong_xml_is_one_line(file, before, after, keys, match):
    gold = "\n".join([*GOLD.splitlines(), "d9.t0 x%1"][:keys])
    xml = file(XML.replace(before, after), "a.xml")
    malformed(match, read_xml, xml, file(gold, "a.txt"))


def test_xml_without_a_sentence_is_one_line(file):
    files = file("<corpus/>", "a.xml"), file("", "a.txt")
    malformed(r"a\.xml: contains no sentence", read_xml, *files)


def test_generated_senses_are_those_of_the_split(file):
    text = file("a bat flew\nhe swung a bat\n", "dev.txt")
    listed = "split\tsentence\ttoken\tword\tsense\ntrain\t0\t9\tbat\tbat%x\ndev\t1\t3\tbat\tbat%tool\n"
    senses = file(listed, "senses.tsv")
    assert [len(sentence.instances) for sentence in read_mini(text, senses)] == [0, 1]
    for line in ("dev\t1\t4\tbat\tbat%tool\n", "dev\n"):  # a place that the text does not have, and no place
        malformed(r"senses\.tsv:4: expected split", read_mini, text, file(listed + line, "senses.tsv"))


def test_first_senses_by_number_else_by_frequency():
    def sentence(word, key, numbers=()):
        return SenseSentence(["x"], [of_word(word, key, numbers=numbers)])

    numbered = [sentence("a", "a%2", ("2",)), sentence("a", "a%2", ("2",)), sentence("a", "a%1", ("1",))]
    later = [sentence("b", "b%2", ("2",))]  # its sense 1 does not occur
    counted = [sentence("c", "c%1"), sentence("c", "c%2"), sentence("c", "c%2")]
    assert wsd.first_senses(numbered + later + counted) == {("a", "n"): "a%1", ("c", "n"): "c%2"}


def test_an_index_numbers_senses(file):
    path = file(f"{BANK[0]} 08420278 1 20\n{BANK[1]} 09213565 2 25\n", "index.sense")
    assert wsd.read_index(path) == {BANK[0]: 1, BANK[1]: 2}
    malformed(r"index\.sense:1: expected a sense key", wsd.read_index, file("bank%1 12 x 1\n", "index.sense"))


@pytest.mark.parametrize("first", [1, 0], ids=["from 1", "from 0"])
def test_an_inventory_says_how_many_words_it_has_and_is_refused_where_that_is_none(file, capsys, first):
    path = file(f"{BANK[0]} 1 {first} 20\r\n{BANK[1]} 2 {first + 1 + (first == 0)} 5\r\n", "index.sense")
    settings: Any = SimpleNamespace(inventory=str(path), train="a", test="a", train_senses=None, test_senses=None)
    sentences = [SenseSentence(["bank"], [of_word("bank", BANK[0])])] * 3
    if first:
        assert wsd._first(settings, sentences, sentences) == {("bank", "n"): BANK[0]}
        assert "index.sense has 3 of the 3 first senses of the words of test (100.0%)" in capsys.readouterr().err
    else:
        malformed(r"index\.sense: has 0 of the 3 first senses.*numbered 1", wsd._first, settings, sentences, sentences)


def test_answers_are_those_of_the_nearest_mean_in_each_layer():
    torch.manual_seed(1)
    chance = random.Random(1)
    forms = [f"w{i}" for i in range(60)]
    source = Source({form: torch.randn(3, 6).half().float() for form in forms})

    def sentences(number):
        words = [chance.sample(forms, 4) for _ in range(number)]
        at = [(chance.randrange(3), chance.choice("abc")) for _ in words]
        return [
            SenseSentence(each, [Instance(start, start + 2, ("lemma", "n"), (sense,), (), 1)])
            for each, (start, sense) in zip(words, at, strict=True)
        ]

    train, test = sentences(30), sentences(50)
    for layer, metric in enumerate(disambiguate(source, train, test, {})):

        def vector(sentence, layer=layer):
            start = sentence.instances[0].start
            return np.mean(
                [source.vectors[w][layer].double().numpy() for w in sentence.words[start : start + 2]], axis=0
            )

        of_senses = {s: np.mean([vector(t) for t in train if t.instances[0].keys == (s,)], axis=0) for s in "abc"}
        right = 0
        for sentence in test:
            x = vector(sentence)
            cosine = {s: x @ m / np.linalg.norm(x) / np.linalg.norm(m) for s, m in of_senses.items()}
            right += max(cosine, key=cosine.__getitem__) == sentence.instances[0].keys[0]
        assert metric.items().totals() == {"right": right, "attempted": 50, "total": 50}


def test_equally_near_means_give_the_most_frequent_sense_and_unknown_words_none():
    source = Source({"x": torch.tensor([[0.3, 0.7]])})
    train = [SenseSentence(["x"], [of_word("x", key)]) for key in ("x%1", "x%2", "x%2")]
    known = means(source, train)
    assert nearest(known, ("x", "n"), source.vectors["x"]) == ["x%2"]
    assert nearest(known, ("x", "v"), source.vectors["x"]) is None


def test_the_score_is_precision_over_attempts_and_recall_over_all():
    metric = SenseF1()
    for answer, gold in (("a", ["b", "a"]), ("a", ["b"]), (None, ["b"])):  # the first is right: any of the gold keys
        metric.add(answer, gold, 0)
    scores = {"f1": 2 * 50 * (100 / 3) / (50 + 100 / 3), "precision": 50, "recall": 100 / 3, "attempted": 200 / 3}
    assert metric.compute() == pytest.approx(scores)


def test_words_that_train_lacks_get_their_first_sense():
    source = Source({"x": torch.tensor([[0.3, 0.7]])})
    train = [SenseSentence(["x"], [of_word("x", "x%1")])]
    test = [SenseSentence(["x"], [of_word("y", "y%1"), of_word("z", "z%1")])]
    first = {("y", "n"): "y%1"}
    for metric in (*disambiguate(source, train, test, first), first_sense(test, first)):
        assert metric.items().totals() == {"right": 1, "attempted": 1, "total": 2}


def accuracy(right, total, documents):
    """The score of sentences with so many right words of all."""
    metric = Accuracy()
    for i, (*counts, document) in enumerate(zip(right, total, documents, strict=True)):
        metric.tally.add(*counts, cluster=document or i)
    return Score.of([metric], "accuracy")


def test_the_difference_of_layers_is_over_documents_and_says_what_it_shows():
    one, two = (accuracy(right, [2, 2, 1, 2], ["a", "a", None, "b"]) for right in ([1, 1, 0, 2], [2, 2, 1, 2]))
    cell = two.cell("mine", "F1", less=one, layer=2, minus=1)
    assert (cell.n, cell.clusters, cell.layer, cell.minus) == (7, 3, 2, 1)
    assert cell.value == pytest.approx(300 / 7)
    shown = studies.StudyCell("mine", "F1", 1.5, 2, 1, low=0.5, high=2.5, n=7, clusters=3, paper=-0.5)
    assert difference_text(shown) == (
        "mine, F1: layer 2 is better than layer 1 (layer 2 minus layer 1: +1.50 [+0.50, +2.50], 7 examples in 3 "
        "clusters); in the paper layer 1 is."
    )
    assert "no layer is shown" in difference_text(studies.StudyCell("mine", "F1", 0.1, 2, 1, low=-0.5, high=0.7))


@pytest.fixture
def arguments(tmp_path, file):
    exported(tmp_path)
    file(COLUMNS, "a.tsv")
    return [*overrides(tmp_path), f"train={tmp_path}/a.tsv", f"test={tmp_path}/a.tsv", "controls=[]"]


@pytest.mark.slow
def test_the_table_is_recorded_once_and_in_the_report(arguments, tmp_path, call):
    call(Wsd, *arguments)
    (path,) = (tmp_path / "analysis" / "open" / "wsd").glob("*.json")
    record, content = json.loads(path.read_text()), path.read_bytes()
    (study,) = studies.read_all(tmp_path)
    rows = of_study(study).rows
    layers = [f"toy, layer {layer}" for layer in ("0", "1", "2", "2 minus layer 1")]
    assert [row[0] for row in rows] == ["first sense", *layers]
    assert [row[2] for row in rows] == ["65.9", "", "67.4", "69", "+1.6"]
    assert {cell.clusters for cell in study.cells if cell.n} == {1}  # both sentences stand in one document
    assert set(record["settings"]["data_sha256"]) == {"train", "test"}
    assert len(record["sha256"]["toy"]) == 64
    _, out, _ = call(Wsd, *arguments)
    assert path.read_bytes() == content
    assert "layer 2" in out
    call(Wsd, *arguments, "sentences=1")
    assert len(list(path.parent.glob("*.json"))) == 2


@pytest.mark.slow
@cases("""
    changed          | match
    test=nowhere.tsv | nowhere.tsv: no such file: test names it
    nosuch=1         | nosuch
    bilm.state=carry | give bilm.state=warm or zero
    format=csv       | format
    format=xml       | train_senses=FILE
""")
def test_wrong_arguments_are_one_line_and_nothing_is_written(arguments, tmp_path, changed, match, refused):
    assert match in refused(Wsd, *arguments, changed)
    assert not (tmp_path / "analysis").exists()


def test_a_key_that_the_inventory_lacks_ends_the_command(arguments, file, refused):
    path = file(f"{BANK[0]} 08420278 1 20\n{BANK[1]} 09213565 2 25\n", "index.sense")
    line = refused(Wsd, *arguments, f"inventory={path}")
    assert "a.tsv:4: the sense key have%2:40:00:: is not in index.sense" in line


def test_what_the_paper_scale_lacks_is_one_message(tmp_path, call):
    _, _, said = call(Wsd, "scale=paper", f"data_root={tmp_path}", f"models_root={tmp_path}")
    for name in "semcor.data.xml ALL.gold.key.txt index.sense weights.hdf5".split():
        assert name in said

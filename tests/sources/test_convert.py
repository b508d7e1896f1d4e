"""From the public sources to the files that the tasks read: on invented lines, and on the sources where they are.

ELMO_BENCH_SOURCES names a folder of them, as `elmo-bench data source=FOLDER` takes it.
"""

import hashlib
import os
from pathlib import Path

import pytest
from hydra.utils import get_object

from elmo_bench.analysis.convert import ewt, semcor
from elmo_bench.sources import fetch, pages
from tasks.coref.convert import litbank
from tasks.ner.convert import resplit, uner
from tasks.snli.convert import subset
from tasks.srl.convert import propbank
from tasks.sst5.convert import trees
from tests.fakes import put, refuses

SOURCES = os.environ.get("ELMO_BENCH_SOURCES")
FETCHED = {name: page for name, page in pages.load().items() if page.convert and name != "uner_ewt_resplit"}


def table(text: str) -> str:
    """Blanks become tabs."""
    return text.replace(" ", "\t")


def test_uner_keeps_words_and_tags_and_repairs_the_first_version(tmp_path):
    text = "# sent_id = blog-x_1-0001\n# text = Oslo !\n" + table("1 Oslo B-LOC - -\n2 ! O - -\n\n")
    final = put(tmp_path / "final", {f"en_ewt-ud-{split}.iob2": text for split in ("dev", "test")})
    rows = [
        "1 Ann B-PER - x", "2 Berg B-O - x", "",  # the entity goes on
        "1 Rome B-LOC - x", "2 ! B-O - x", "",  # a mark ends it
        "1 Dane B-OTH - x", "2 wins B-O - x", "",
    ]  # fmt: skip
    text = "# newdoc id = a\n" + table("\n".join(rows)) + "\n"
    first = put(tmp_path / "first", {"en_ewt-ud-train.iob2": text})
    made = uner({"final": final, "first": first})
    assert made["ner_uner_ewt/dev.iob2"] == table("Oslo B-LOC\n! O\n\n")
    assert made["ner_uner_ewt/dev.iob2.documents"] == "blog-x_1\n"
    assert made["ner_uner_ewt/train.iob2"] == table("Ann B-PER\nBerg I-PER\n\nRome B-LOC\n! O\n\nDane O\nwins O\n\n")


def test_resplit_takes_every_tenth_document_of_train_for_dev_and_joins_dev_and_test(tmp_path):
    documents = {"train": [f"t{number}" for number in range(20)], "dev": ["d"], "test": ["e"]}
    for split, names in documents.items():
        treebank = [f"# newdoc id = {name}\n1\t{name}\n\n1\t!\n\n" for name in names]
        put(tmp_path, {f"ud_ewt/en_ewt-ud-{split}.conllu": "".join(treebank)})
        put(tmp_path, {f"ner_uner_ewt/{split}.iob2": "".join(f"{name}\tO\n\n!\tO\n\n" for name in names)})
    made = resplit({"made": tmp_path})
    words = {
        split: [line[0] for line in map(str.split, made[f"ner_uner_resplit/resplit-{split}.iob2"].splitlines()) if line]
        for split in documents
    }
    assert words["dev"] == "t9 ! t19 !".split()
    assert words["test"] == "d ! e !".split()
    assert words["train"][::2] == [name for name in documents["train"] if name not in ("t9", "t19")]
    assert made["ner_uner_resplit/resplit-test.iob2.documents"] == "d\nd\ne\ne\n"


def test_the_new_split_of_the_real_data_is_that_of_its_page(data_root):
    made = resplit({"made": data_root})
    page = pages.load()["uner_ewt_resplit"]
    assert {name: hashlib.sha256(text.encode()).hexdigest() for name, text in made.items()} == page.files
    test, dev = (made[f"ner_uner_resplit/resplit-{split}.iob2.documents"].splitlines() for split in ("test", "dev"))
    assert (len({*test}), len({*dev}), {*test} & {*dev}) == (634, 54, set())


def test_sst_takes_the_official_training_trees_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.sst5.convert.TRAIN", 2)
    folder = put(tmp_path, {"trees/train.txt": "(1 a)\n(2 b)\n(3 c)\n", "trees/dev.txt": "(3 c)\n"})
    put(folder, {"trees/test.txt": "(4 d)\n"})
    made = trees({"trees": folder})
    assert made == {"sst/train.txt": "(1 a)\n(2 b)\n", "sst/dev.txt": "(3 c)\n", "sst/test.txt": "(4 d)\n"}


def snli_sources(folder: Path, train: str) -> dict[str, Path]:
    for split, premise in (("dev", "A crow sits ."), ("test", "A mason 's hat .")):
        columns = {"labels": "neutral\n", "s1": f"{premise} \n", "s2": "It waits .\n"}
        put(folder, {f"dataset/eSNLI/{name}.{split}": text for name, text in columns.items()})
    put(folder, {"data/snli/train.csv": train, "data/snli/test.csv": "3\t3\tA  lamp.\tIt is.\n"})
    return {"splits": folder, "subset": folder}


def test_snli_leaves_out_repeated_pairs_and_premises_of_dev_and_test(tmp_path):
    train = "1\t1\tA crow sits.\tNo.\n2\t2\tA ferry.\tNo.\n2\t2\tA ferry.\tNo.\n1\t1\tA mason's hat.\tNo.\n"
    made = subset(snli_sources(tmp_path, train))
    header = "gold_label\tsentence1\tsentence2\n"
    assert made["snli/train.tsv"] == f"{header}contradiction\tA ferry.\tNo.\nentailment\tA lamp.\tIt is.\n"
    assert made["snli/dev.tsv"] == f"{header}neutral\tA crow sits .\tIt waits .\n"


def test_snli_names_the_line_that_is_wrong(tmp_path):
    with refuses(r"train.csv:2: expected a label"):
        subset(snli_sources(tmp_path, "1\t1\ta\tb\n7\t7\ta\tb\n"))


def test_litbank_orders_brackets_and_splits_by_the_alphabet(tmp_path):
    rows = [["Ann", "(0)|(1"], ["of", ""], ["Oslo", "(2)|1)"]]
    for novel in "abcdefghij":
        body = "".join(table(f"{novel}_brat 0 {i} {word} {'_ ' * 8}{cell}\n") for i, (word, cell) in enumerate(rows))
        text = f"#begin document ({novel}_brat); part 0\n{body}\n#end document\n"
        put(tmp_path, {f"coref/conll/{novel}_brat.conll": text})
    made = litbank({"litbank": tmp_path})
    assert [text.count("#begin") for text in made.values()] == [8, 1, 1]
    lines = made["coref_litbank/dev.conll"].splitlines()
    assert lines[0] == "#begin document (i); part 000"
    assert lines[1:4] == [
        table(f"i 0 {number} {word} XX - - - - - * {cell}")
        for number, word, cell in ((0, "Ann", "(1|(0)"), (1, "of", "-"), (2, "Oslo", "(2)|1)"))
    ]


def test_litbank_names_the_line_of_a_wrong_bracket(tmp_path):
    text = "#begin document (a_brat); part 0\n" + table("a_brat 0 0 Ann _ _ _ _ _ _ _ _ 3)\n")
    put(tmp_path, {"coref/conll/a_brat.conll": text})
    with refuses(r"a_brat.conll:2: .*not open"):
        litbank({"litbank": tmp_path})


SKELETON = """d 0 0 [WORD] NNP (S* - - (ARG0*) *
d 0 1 [WORD] VBD * take take.01 (V* *
d 0 2 [WORD] RP * - - *) *
d 0 3 [WORD] VBG *) leave leave.02 (ARG1*) (V*)

d 1 0 [WORD] UH (X*) - -

d 2 0 [WORD] VB (X* go go.01 *
d 2 1 [WORD] . *) - - (V*)
"""
WORDS = "# text\n1 Ann x\n2 took x\n3 off x\n3.1 ghost x\n4 leaving x\n\n1 Oh x\n2 , x\n\n1 go x\n2 . x\n\n"


def test_propbank_gets_its_words_and_leaves_out_what_does_not_match(tmp_path):
    bank, ud = tmp_path / "bank", tmp_path / "ud"
    for split in ("train", "dev", "test"):
        put(bank, {f"docs/evaluation/ewt.{split}.txt": f"web/00/{split}.xml\nweb/00/none.xml\n"})
        put(bank, {f"data/google/ewt/web/00/{split}.xml.gold_skel": SKELETON})
        put(ud, {f"not-to-release/sources/web/{split}.xml.conllu": table(WORDS)})
    text = propbank({"propbank": bank, "ud": ud})["srl_ewt/dev.conll"].splitlines()
    name = "google/ewt/web/00/dev"
    assert text[0] == f"#begin document ({name}); part 000"
    assert text[2] == table(f"{name} 0 1 took VBD * take 01 - - * (V* * -")
    assert text[1:5] == [line for line in text if line.startswith(name)]  # of three sentences one matches
    assert text[-1] == "#end document"


def test_ud_joins_train_in_the_order_of_its_list(tmp_path):
    put(tmp_path, {"not-to-release/file-lists/files.train": "b/2.conllu\na/1.conllu\n"})
    put(tmp_path, {"not-to-release/sources/a/1.conllu": "1\n\n"})
    put(tmp_path, {"not-to-release/sources/b/2.conllu": "2\n\n"})
    put(tmp_path, {f"en_ewt-ud-{split}.conllu": split for split in ("dev", "test")})
    made = ewt({"ud": tmp_path})
    assert list(made.values()) == ["2\n\n1\n\n", "dev", "test"]


def test_semcor_splits_expressions_and_drops_senses_that_wordnet_lacks(tmp_path):
    elements = [
        "<wf cmd=done pos=VB lemma=take_off wnsn=2;1 lexsn=2:38:00::;2:38:01::>took_off</wf>",
        "<wf cmd=done pos=JJ lemma=old wnsn=0 lexsn=5:00:00:x:00>old</wf>",
        "<wf cmd=ignore pos=DT>the</wf>",
        "<punc>&amp;</punc>",
    ]
    text = "<context>\n<s snum=1>\n" + "\n".join(elements) + "\n</s>\n</context>\n"
    for part in ("brown1", "brown2", "brownv"):
        put(tmp_path, {f"data/semcor3.0/{part}/tagfiles/br-a01": text})
    made = semcor({"semcor": tmp_path})["wsd_semcor/train.tsv.xz"]
    assert [line for line in made.splitlines() if line.startswith("#")] == [
        f"# doc = {part}/br-a01" for part in ("brown1", "brown2", "brownv")
    ]
    assert made.splitlines()[1:7] == [
        "took\tVB\ttake_off\ttake_off%2:38:00::;take_off%2:38:01::\t2;1",
        "off\tVB\t=\t=\t=",
        "old\tJJ\told\t-\t-",
        "the\tDT\t-\t-\t-",
        "&\tPUNCT\t-\t-\t-",
        "",
    ]


@pytest.mark.parametrize("name", FETCHED)
def test_the_sources_give_the_files_of_the_page(name, tmp_path):
    if SOURCES is None:
        pytest.skip("ELMO_BENCH_SOURCES names no folder of sources")
    page = FETCHED[name]
    if absent := fetch.missing(page.sources.values(), Path(SOURCES)):
        pytest.skip(f"not in ELMO_BENCH_SOURCES: {absent[0]}")
    places = fetch.SourcePlaces(tmp_path, Path(SOURCES))
    texts = get_object(str(page.convert))({key: fetch.obtain(source, places) for key, source in page.sources.items()})
    assert {key: hashlib.sha256(text.encode()).hexdigest() for key, text in texts.items()} == page.files

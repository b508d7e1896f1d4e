"""Small valid files of every kind that is read, of invented words: what the drill of inputs mutates."""

import io
import json
import zipfile

import numpy as np

from elmo_bench.records.studies import StudyCell, StudyRecord

DOCUMENTS = "web-1\nweb-1\nmail 2\n"  # of the sentences of COLUMNS
COLUMNS = """\
# one
Mira B-PER
Tolk I-PER
left O
Gorvale B-LOC
. O

Gorvale S-LOC
sleeps O

The O
Tolk B-ORG
Works E-ORG
"""
NER = COLUMNS.replace("S-LOC", "B-LOC").replace("E-ORG", "I-ORG")


TAKES = """\
a/b 0 0 Mira NNP (S* - - - Ann (PER) (ARG0*) (0)
a/b 0 1 takes VBZ * take 01 1 Ann * (V*) -
a/b 0 2 her PRP$ * - - - Ann * (ARG1* (1|(0)
a/b 0 3 lamp NN *) - - - Ann * *) 1)

"""
SHE = """\
a/b 0 0 She PRP (S* - - - Bo * (ARG0*) * (0)
a/b 0 1 says VBZ * say 01 1 Bo * (V*) * -
a/b 0 2 it PRP * - - - Bo * (ARG1* (ARG1*) (1)
a/b 0 3 glows VBZ *) glow 02 1 Bo * *) (V*) -

"""
CONLL = "".join(
    f"#begin document ({name}); part {part:03}\n{text}#end document\n"
    for part, (name, text) in enumerate((("a/b", TAKES + SHE), ("c", SHE)))
)

SNLI_TSV = """\
gold_label\tsentence1\tsentence2
neutral\tA crow sits.\tIt is dark-blue.
entailment\tTwo masons don't rest.\tMasons work.
-\tA lamp.\tThe lamp glows.
contradiction\tThe "ferry" left.\tIt stays.
"""
NAMES, *PAIRS = (line.split("\t") for line in SNLI_TSV.splitlines())
SNLI_JSONL = "".join(
    json.dumps({**dict(zip(NAMES, pair, strict=True)), "pairID": str(i), "n": i, "x": [1.5, None]}) + "\n"
    for i, pair in enumerate(PAIRS)
)
TREES = """\
(3 (2 A) (4 (3 bright) (2 gem)))
(1 (2 It) (1 (1 drags) (2 -LRB-)))
(2 (2 so) (2 (2 very) (2 (2 plain) (2 .))))
"""
ARTICLE = """
{"title": "Gorvale a", "paragraphs": [
    {"context": "The ferry of Gorvale carries 1,000 lamps. Mira Tolk lit them in 1840.", "qas": [
        {"id": "a1", "question": "Who lit the lamps?", "answers": [{"text": "Mira Tolk", "answer_start": 42}]},
        {"id": "a2", "question": "How many lamps?", "answers": [
            {"text": "1,000", "answer_start": 29}, {"text": "1,000 lamps", "answer_start": 29}]}]}]}
"""
OTHER = ARTICLE.replace("Gorvale a", "Gorvale b").replace('"a1"', '"b1"').replace('"a2"', '"b2"')
SQUAD = {"version": "1.1", "data": [json.loads(ARTICLE), json.loads(OTHER)]}
ANSWERS = {"a1": "Tolk", "a2": "1,000", "b1": "the lamps", "b2": ""}
WORDS = "Mira lamp ferry , héron the".split()
NUMBERS = [[round(0.1 * i - 0.25 * k, 3) for k in range(4)] for i in range(len(WORDS))]
VECTORS = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, NUMBERS, strict=True))
WORD_LIST = "".join(f"{word}\n" for word in WORDS)
NUMBER_LIST = "".join(" ".join(map(str, row)) + "\n" for row in NUMBERS)
SENTENCES = "the crow sat by the lamp .\nMira left\n\nher ferry , héron and all , has gone\nthe lamp glows\n"
VOCABULARY = "<S>\n</S>\n<UNK>\nthe\nlamp\ncrow\nferry\n"
CELL = StudyCell("a", "F1", 1.5, 2, 1, low=0.5, high=2.5, n=9, clusters=3)
STUDY = StudyRecord("mini", "wsd", "T", "n", [CELL], "mini")
PREDICT = json.loads("""
{"ner": [{"tokens": ["Mira", "left"]}, {"text": "The Tolk Works ."}],
 "srl": [{"tokens": ["Mira", "takes", "it"], "predicates": [1]}, {"text": "She says so", "predicates": [1, 2]}],
 "coref": [{"sentences": [["Mira", "left", "."], ["She", "ran"]], "speakers": ["Ann", ["Bo", "-"]], "genre": "a"},
           {"text": "Mira left .\\nShe ran", "document": "d"}],
 "snli": [{"premise": "A crow sits.", "hypothesis": "It doesn't."}],
 "sst5": [{"tokens": ["A", "gem"]}, {"text": "it's half-good (or not)"}],
 "squad": [{"context": "The ferry of Gorvale carries 1,000 lamps. Mira Tolk lit them in 1840.", "question": "Who?",
            "id": "q1"}, {"context": "A lamp.", "question": "What?"}]}
""")


def renamed() -> str:
    """CONLL with other names of documents."""
    return CONLL.replace("(a/b)", "(d)").replace("(c)", "(e)")


def matrix() -> bytes:
    """NUMBERS as a .npy file."""
    file = io.BytesIO()
    np.save(file, np.array(NUMBERS, dtype=np.float32))
    return file.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    """A .zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            info = zipfile.ZipInfo()
            info.filename = name  # as it stands, be it empty
            with packed.open(info, "w") as member:
                member.write(content)
    return file.getvalue()


SENSES = (
    "# doc = one\nA\tDT\t-\t-\t-\nferry\tNN\tferry_boat\tferry_boat%1:06:00::\t1\nboat\tNN\t=\t=\t=\n"
    "left\tVB\tleave\tleave%2:38:01::;leave%2:38:02::\t1;4\n.\tPUNCT\t-\t-\t-\n\n# doc = two\nMasons\tNN\tmason\t"
    "mason%1:18:00::\t1\nslept\tVB\tsleep\tsleep%2:29:00::\t1\n"
)
SENSES_XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="drill"><text id="d0"><sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf> <instance id="d0.s0.t0" lemma="ferry_boat" pos="NOUN">ferry boat</instance>
<instance id="d0.s0.t1" lemma="leave" pos="VERB">left</instance> <wf lemma="&amp;" pos=".">&amp;</wf>
</sentence></text></corpus>
"""
SENSE_KEYS = "d0.s0.t0 ferry_boat%1:06:00::\nd0.s0.t1 leave%2:38:01:: leave%2:38:02::\n"
SENSE_INDEX = "leave%2:38:01:: 02009433 1 47\nleave%2:38:02:: 02015598 2 16\nold%5:00:00:past:00 01729819 3 5\n"
CONLLU = """# text = Masons cannot sleep
1\tMasons\tmason\tNOUN\tNNS
2-3\tcannot\t_\t_\t_
2\tcan\tcan\tAUX\tMD
3\tnot\tnot\tPART\tRB
4\tsleep\tsleep\tVERB\tVB

1\tSleep\tsleep\tVERB\tVB
"""

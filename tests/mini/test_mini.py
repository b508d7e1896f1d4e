"""The generated data sets: well formed in every format over seeds, the same bytes everywhere, and what they are for."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from elmo_bench import mini
from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.build import Builder
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.events import INDEFINITE, Common, Event
from elmo_bench.mini.language.lexicon import Lexicon, english_forms
from elmo_bench.mini.language.english import REVIEWS
from elmo_bench.mini.language.morphology import plural, third
from elmo_bench.mini.language.phrases import MENTION
from elmo_bench.mini.language.world import World
from elmo_bench.mini.passages import Passages
from elmo_bench.mini.scenes import LABELS, Scenes
from elmo_bench.mini.stories import Stories
from elmo_bench.system.errors import UserError
from elmo_bench.text import brackets
from elmo_bench.text.tags import Span, violation

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "dev", "test")
SMALL = {
    "lm": [4000, 400, 800], "ner": [60, 20, 30], "srl": [60, 20, 30], "coref": [6, 2, 3], "snli": [60, 18, 30],
    "squad": [8, 3, 4], "sst": [60, 20, 30], "names": 300, "invented": 3,
}  # fmt: skip
GOLDEN = "72186198c7dabaa58f5c315c4eb2013c5939208b620e641f265bf684385823cd"
# sha256 over the files of seed 1 in the small sizes: where it changes, `mini.VERSION` must rise.

any_seed = pytest.mark.parametrize("seed", range(12))  # few enough for one generation each to serve all tests


@functools.cache
def files(seed: int) -> dict[str, str]:
    return dict(Builder(seed, mini.Sizes.of(SMALL)).files())


def blocks(text: str) -> list[list[list[str]]]:
    """Sentences of a column file, without comments."""
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return [[row.split("\t") for row in block.split("\n")] for block in "\n".join(lines).strip().split("\n\n")]


def each_split(seed: int, pattern: str):
    return [(split, files(seed)[pattern.format(split)]) for split in SPLITS]


# Well formed, whatever the seed.


@any_seed
def test_entities_are_valid_iob2(seed):
    for split, text in each_split(seed, "ner/{}.iob2"):
        sentences = blocks(text)
        assert len(sentences) == SMALL["ner"][SPLITS.index(split)]
        for rows in sentences:
            assert all(word and " " not in word for word, _ in rows)
            assert all(re.fullmatch(r"O|[BI]-(PER|LOC|ORG|MISC)", tag) for _, tag in rows)
            assert violation([tag for _, tag in rows], "iob2") is None


@any_seed
def test_propositions_are_balanced_with_one_verb_a_column(seed):
    for _, text in each_split(seed, "srl/{}.conll"):
        for rows in blocks(text):
            lemmas = [i for i, row in enumerate(rows) if row[6] != "-"]
            assert {len(row) for row in rows} == {12 + len(lemmas)}
            assert [row[2] for row in rows] == [str(i) for i in range(len(rows))]
            for column, index in enumerate(lemmas, start=11):
                spans = brackets.spans([row[column] for row in rows])  # refuses what is not balanced
                assert all(one.end <= two.start for one, two in pairwise(spans))
                labels = Counter(span.type for span in spans)
                assert labels["V"] == 1
                assert Span("V", index, index + 1) in spans
                for label, n in labels.items():
                    assert re.fullmatch(r"V|(R-)?(ARG[0-4]|ARGM-[A-Z]{3})|C-ARG[0-4]", label)
                    assert label[:2] not in ("C-", "R-") or label[2:] in labels
                    assert n == 1 or label.startswith("ARGM")


@any_seed
def test_clusters_have_two_mentions_and_brackets_nest(seed):
    for split, text in each_split(seed, "coref/{}.conll"):
        documents = re.findall(r"#begin document \((.*?)\); part 000\n(.*?)#end document\n", text, re.DOTALL)
        assert len(documents) == SMALL["coref"][SPLITS.index(split)]
        for name, body in documents:
            mentions: Counter[str] = Counter()
            for rows in blocks(body):
                assert {(row[0], row[1], len(row)) for row in rows} == {(name, "0", 12)}
                assert len({row[9] for row in rows}) == 1  # one speaker a sentence
                found = brackets.mentions([row[-1] for row in rows])  # refuses what is not balanced
                assert not any(one.start < two.start < one.end < two.end for one in found for two in found)
                mentions.update(span.type for span in found)
            assert mentions
            assert min(mentions.values()) >= 2


@any_seed
def test_inference_labels_are_balanced(seed):
    for split, text in each_split(seed, "snli/{}.tsv"):
        header, *rows = [line.split("\t") for line in text.rstrip("\n").split("\n")]
        assert header == ["gold_label", "sentence1", "sentence2"]
        assert len(rows) == SMALL["snli"][SPLITS.index(split)]
        counts = Counter(label for label, _, _ in rows)
        assert set(counts) == set(LABELS)
        assert max(counts.values()) - min(counts.values()) <= 1


@any_seed
def test_answers_stand_at_their_offsets(seed):
    ids = set()
    for split, text in each_split(seed, "squad/{}-v1.1.json"):
        content = json.loads(text)
        assert content["version"] == "1.1"
        paragraphs = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
        assert len(paragraphs) == SMALL["squad"][SPLITS.index(split)]
        for paragraph in paragraphs:
            for qa in paragraph["qas"]:
                assert qa["id"] not in ids
                ids.add(qa["id"])
                assert qa["question"].endswith("?")
                assert len(qa["answers"]) == (1 if split == "train" else 3)
                for answer in qa["answers"]:
                    start, answer_text = answer["answer_start"], answer["text"]
                    assert answer_text == answer_text.strip() != ""
                    assert paragraph["context"][start : start + len(answer_text)] == answer_text


@any_seed
def test_trees_are_binary_with_a_label_everywhere(seed):
    for split, text in each_split(seed, "sst/{}.txt"):
        trees = text.rstrip("\n").split("\n")
        assert len(trees) == SMALL["sst"][SPLITS.index(split)]
        for tree in trees:
            rest = tree
            while "(" in rest[1:]:  # the innermost nodes become leaves, until one is left
                shorter = re.sub(r"\([0-4] \([0-4] [^() ]+\) \([0-4] [^() ]+\)\)", "(2 node)", rest)
                assert shorter != rest, tree
                rest = shorter
        roots = Counter(tree[1] for tree in trees)
        assert max(roots.values()) - min(roots.values()) <= 1
        assert set(roots) == set("01234")


@any_seed
def test_plain_text_is_tokenized_and_senses_point_to_their_words(seed):
    lines = {split: text.rstrip("\n").split("\n") for split, text in each_split(seed, "lm/{}.txt")}
    for split, sentences in lines.items():
        assert sum(len(line.split(" ")) for line in sentences) >= SMALL["lm"][SPLITS.index(split)]
        assert all(line == " ".join(line.split()) and line[-1] in ".?" for line in sentences)
    header, *rows = [line.split("\t") for line in files(seed)["lm/senses.tsv"].rstrip("\n").split("\n")]
    assert header == ["split", "sentence", "token", "word", "sense"]
    for split, sentence, token, word, sense in rows:
        form = lines[split][int(sentence)].split(" ")[int(token)].lower()
        assert form in (word, plural(word), third(word))
        assert sense.startswith(f"{word}%")


@any_seed
def test_no_sentence_is_in_two_splits(seed):
    def texts(path: str) -> set[str]:
        text = files(seed)[path]
        if path.startswith("lm"):
            return set(text.rstrip("\n").split("\n"))
        if path.startswith("snli"):
            return {sentence for line in text.rstrip("\n").split("\n")[1:] for sentence in line.split("\t")[1:]}
        if path.startswith("sst"):
            return {" ".join(re.findall(r"([^() ]+)\)", line)) for line in text.rstrip("\n").split("\n")}
        column = 0 if path.startswith("ner") else 3
        return {" ".join(row[column] for row in rows) for rows in blocks(text)}

    patterns = ("lm/{}.txt", "ner/{}.iob2", "srl/{}.conll", "coref/{}.conll", "snli/{}.tsv", "sst/{}.txt")
    for pattern in patterns:
        train, dev, test = (texts(pattern.format(split)) for split in SPLITS)
        assert not (train & dev) | (train & test) | (dev & test), pattern
        held_out = dev | test
        assert pattern.startswith("lm") or not held_out & texts("lm/train.txt"), pattern


@any_seed
def test_reviews_with_advice_are_not_those_of_dev_and_test(seed):
    advice = "|".join(way for ways in REVIEWS["advice"].values() for way in ways.split(", "))
    advised = re.compile(rf"(?:(?:{advice}) , for )?(.*?)(?: , so (?:{advice}))? \.", re.IGNORECASE)
    held_out = {
        " ".join(re.findall(r"([^() ]+)\)", line)).lower()
        for split in ("dev", "test")
        for line in files(seed)[f"sst/{split}.txt"].rstrip("\n").split("\n")
    }
    found = [advised.fullmatch(line) for line in files(seed)["lm/train.txt"].split("\n")]
    assert sum(match is not None and match.group(1) + " ." != match.string.lower() for match in found) > 20
    assert not held_out & {f"{match.group(1)} .".lower() for match in found if match}


# The same bytes.


def digest(texts: dict[str, str]) -> str:
    """sha256 over names and texts."""
    return hashlib.sha256("".join(name + text for name, text in texts.items()).encode()).hexdigest()


def test_golden_bytes():
    assert digest(files(1)) == GOLDEN


def test_bytes_do_not_depend_on_hashing():
    """In a process that hashes otherwise."""
    code = "from tests.mini.test_mini import digest, files; print(digest(files(1)))"
    environment = {"PYTHONHASHSEED": "1", "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == digest(files(1)), run.stderr


def test_another_seed_is_another_world():
    one, two = (set(files(seed)["lm/train.txt"].split("\n")) for seed in (1, 2))
    assert len(one & two) < len(one) / 50


# What it is for.


def test_ambiguous_words_occur_in_each_sense():
    senses: dict[str, Counter[str]] = {}
    for seed in range(10):
        for row in files(seed)["lm/senses.tsv"].rstrip("\n").split("\n")[1:]:
            *_, word, sense = row.split("\t")
            senses.setdefault(word, Counter())[sense] += 1
    for word in ("bank", "bat", "court", "port", "pitcher", "crane"):
        assert len(senses[word]) == 2, word
        assert min(senses[word].values()) >= 3, word
    assert any({f"{word}%verb"} < set(counts) for word, counts in senses.items())  # a noun here, a verb there


@any_seed
def test_labels_of_scenes_follow_from_their_parts(seed):
    scenes = Scenes(Chance("test", seed), World(seed, 300, 3))
    for i in range(90):
        pair = scenes.draw(i % 3)
        found = {relation(scenes.lexicon, *pair.scenes, part) for part in ("verb", "subject", "object", "place")}
        label = "excludes" if "excludes" in found else "open" if "open" in found else "follows"
        if pair.negated:  # turns round what the scenes say
            label = {"excludes": "follows", "follows": "excludes"}.get(label, label)
        expected = {"entailment": "follows", "contradiction": "excludes", "neutral": "open"}[pair.label]
        assert label == expected, (pair.premise.text, pair.hypothesis.text)


def relation(lexicon: Lexicon, premise: Event, hypothesis: Event, part: str) -> str:
    """Whether what the hypothesis says of a part follows from the premise, is excluded by it, or is open."""
    told, said = getattr(premise, part), getattr(hypothesis, part)
    if part == "verb":
        general = lexicon.verbs[told.frame.name].items[0]
        if told.frame != said.frame:
            return "excludes"
        return "follows" if said in (told, general) else "open" if told == general else "excludes"
    if said is None or (part == "object" and premise.verb.frame != hypothesis.verb.frame):
        return "follows"
    return "open" if told is None else compare(lexicon, told, said, part)


def compare(lexicon: Lexicon, told: Common, said: Common, part: str) -> str:
    general = lexicon.hypernyms[told.noun.group]
    nouns = "excludes"
    if said.noun in (told.noun, lexicon.hypernyms[told.noun.group]):
        nouns = "follows"
    elif told.noun == general and said.noun.group == told.noun.group:
        nouns = "open"
    adjectives = (
        "follows" if said.adjectives in ((), told.adjectives) else "open" if not told.adjectives else "excludes"
    )
    number = (
        "follows" if said.number in (told.number, INDEFINITE) and bool(said.number) == bool(told.number) else "open"
    )
    if number == "open" and told.number != INDEFINITE:
        number = "excludes"
    found = {nouns, adjectives, number}
    assert part != "place" or "excludes" not in found
    return "excludes" if "excludes" in found else "open" if "open" in found else "follows"


@any_seed
def test_the_other_tasks_are_as_a_reader_would_have_them(seed):
    world = World(seed, 300, 3)
    for i in range(40):
        passage = Passages(Chance("passages", seed, i), world).draw()
        for question in passage.questions:
            assert all(passage.context.count(answer.text) for answer in question.answers)
            assert question.answers[0].text.lower() not in f" {question.question.text.lower()} ".split(" ")
        clusters: dict[str, list[str]] = {}
        for told in Stories(Chance("stories", seed, i), world).draw():
            for span in told.spans[MENTION]:
                clusters.setdefault(span.type, []).append(" ".join(told.forms[span.start : span.end]).lower())
        pronouns = {"she", "he", "it", "they", "her", "him", "them", "his", "its", "their"}
        for first, *_rest in clusters.values():
            assert first not in pronouns  # introduced before


def test_invented_words_are_not_english():
    english = english_forms()
    for seed in range(3):
        made = World(seed, 300, 3).lexicon.namer.made
        assert not {"never", "last", "given", "long", "past"} - english
        assert not set(made) & english
        assert not [word for word in made if "porn" in word.lower()]


# On disk and on the command line.

TINY = {name: [1, 1, 1] for name in SMALL if name not in ("names", "invented")} | {"names": 200, "invented": 2}


def test_ensure_generates_once_mends_what_is_damaged_and_refuses_another_data_set(tmp_path):
    texts = dict(Builder(1, mini.Sizes.of(TINY)).files())
    folder = mini.ensure_data(tmp_path / "a" / "b", 1, TINY)
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written - {"lock"} == {*texts, mini.MANIFEST}
    text = folder / "ner/dev.iob2"
    stamp = text.stat().st_mtime_ns
    assert mini.ensure_data(folder, 1, TINY) == folder
    assert text.stat().st_mtime_ns == stamp
    text.write_text("Tarvel\tB-PER\n")
    mini.ensure_data(folder, 1, TINY)
    assert text.read_text(encoding="utf-8") == texts["ner/dev.iob2"]
    for name in ("ner/dev.iob2", mini.MANIFEST):  # somebody else could have written it
        (folder / name).chmod(0o666)
        mini.ensure_data(folder, 1, TINY)
        assert (folder / name).stat().st_mode & 0o777 != 0o666
    with pytest.raises(UserError, match="another seed, size or version"):
        mini.ensure_data(folder, 2, TINY)


def test_one_task_makes_its_own_files_and_the_same_text(tmp_path):
    whole = dict(Builder(1, mini.Sizes.of(TINY)).files())
    mini.ensure_data(tmp_path, 1, TINY, ["ner"])
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} - {"lock"}
    assert written == {mini.MANIFEST, *(name for name in whole if name.startswith(("ner/", "lm/")))}
    text = tmp_path / "lm/train.txt"
    stamp = text.stat().st_mtime_ns
    mini.ensure_data(tmp_path, 1, TINY, ["snli", "ner"])  # the text and NER stay
    assert text.stat().st_mtime_ns == stamp
    mini.ensure_data(tmp_path, 1, TINY)
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in whole} == whole
    manifest = (tmp_path / mini.MANIFEST).read_bytes()
    mini.ensure_data(tmp_path / "at once", 1, TINY)
    assert (tmp_path / "at once" / mini.MANIFEST).read_bytes() == manifest


def test_a_damaged_manifest_is_made_again(tmp_path):
    manifest = mini.ensure_data(tmp_path, 1, TINY) / mini.MANIFEST
    whole = manifest.read_bytes()
    seed, digit = whole.index(b'"seed": 1') + 8, whole.index(b'iob2": "') + 8
    damages = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in (seed, digit, 0)]
    for damaged in [*damages, whole[:90], b""]:
        manifest.write_bytes(damaged)
        mini.ensure_data(tmp_path, 1, TINY)
        assert manifest.read_bytes() == whole


def test_a_text_is_mended_before_a_pretraining_reads_it(tmp_path):
    mini.mend(tmp_path)  # no data set: left alone
    text = mini.ensure_data(tmp_path, 1, TINY) / "lm/train.txt"
    whole = text.read_bytes()
    text.write_bytes(whole[:-9])
    mini.mend(tmp_path)
    assert text.read_bytes() == whole
    (tmp_path / mini.MANIFEST).write_bytes(b"")
    with pytest.raises(UserError, match="generate the data again"):
        mini.mend(tmp_path)


def test_ensure_follows_the_configuration(tmp_path):
    roots = Places(None, "", "", "")
    scale = ScaleConfig(name="mini", folder=str(tmp_path), seed=1, version=mini.VERSION, sizes=TINY, only="sst5")
    assert mini.MiniData(scale, roots).make() == tmp_path
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"lm", "sst"}
    train = dict(Builder(1, mini.Sizes.of(TINY)).files())["lm/train.txt"]
    assert (tmp_path / "lm/train.txt").read_text(encoding="utf-8") == train
    with pytest.raises(UserError, match="generates version"):
        mini.MiniData(dataclasses.replace(scale, version=0), roots).make()


@pytest.mark.parametrize("sizes", [{"nerr": [1, 1, 1]}, {"ner": [1, 1]}, {"ner": 5}, {"lm": [0, 1, 1]}, {"names": 3}])
def test_wrong_sizes_are_named(sizes):
    with pytest.raises(UserError, match=f"sizes.{next(iter(sizes))}"):
        mini.Sizes.of(sizes)

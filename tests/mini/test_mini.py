"""The generated data sets: well formed in every format over seeds, the same bytes everywhere, and what they are for."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import RunConfig, ScaleConfig
from elmo_bench.mini import MiniData
from elmo_bench.mini import data as mini
from elmo_bench.mini.build import Builder
from elmo_bench.mini.language.clauses import MENTION
from elmo_bench.mini.language.lexicon import (
    CLASS,
    REVIEWS,
    SYLLABLES,
    WORDS,
    Chance,
    Lexicon,
    Slot,
    english_forms,
    forms,
    inflected,
)
from elmo_bench.mini.language.sentences import Stories
from elmo_bench.mini.language.world import INDEFINITE, Event, Participant, World
from elmo_bench.mini.passages import Passages
from elmo_bench.mini.scenes import LABELS, Scenes
from elmo_bench.text import brackets
from elmo_bench.text.tags import Span, encode, spans
from tests.fakes import cases, refuses

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "dev", "test")
SMALL = json.loads("""
{"lm": [4000, 400, 800], "ner": [60, 20, 30], "srl": [60, 20, 30], "coref": [6, 2, 3], "snli": [60, 18, 30],
 "squad": [8, 3, 4], "sst": [60, 20, 30], "names": 300, "invented": 3}
""")
GOLDEN = "31e60636cc459331074d6ef86ded5842cb8a605b24653241173af1861599f128"
# sha256 over the files of seed 1 in the small sizes: where it changes, `mini.VERSION` must rise.

any_seed = pytest.mark.parametrize("seed", range(6))  # few enough for one generation each to serve all tests


@functools.cache
def files(seed: int) -> dict[str, str]:
    return dict(Builder(seed, valid(mini.Sizes, SMALL)).files())


def blocks(text: str) -> list[list[list[str]]]:
    """Sentences of a column file, without comments."""
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return [[row.split("\t") for row in block.split("\n")] for block in "\n".join(lines).strip().split("\n\n")]


def lines(seed: int, path: str) -> list[str]:
    return files(seed)[path].rstrip("\n").split("\n")


def words(tree: str) -> str:
    return " ".join(re.findall(r"([^() ]+)\)", tree))


# Well formed, whatever the seed.


@any_seed
def test_entities_are_valid_iob2(seed):
    for split, size in zip(SPLITS, SMALL["ner"], strict=True):
        sentences = blocks(files(seed)[f"ner/{split}.iob2"])
        assert len(sentences) == size
        for rows in sentences:
            assert all(word and " " not in word for word, _ in rows)
            assert all(re.fullmatch(r"O|[BI]-(PER|LOC|ORG|MISC)", tag) for _, tag in rows)
            tags = [tag for _, tag in rows]
            assert encode(spans(tags), len(tags), "iob2") == tags


@any_seed
def test_propositions_are_balanced_with_one_verb_a_column(seed):
    for rows in (rows for split in SPLITS for rows in blocks(files(seed)[f"srl/{split}.conll"])):
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
    for split, size in zip(SPLITS, SMALL["coref"], strict=True):
        text = files(seed)[f"coref/{split}.conll"]
        documents = re.findall(r"#begin document \((.*?)\); part 000\n(.*?)#end document\n", text, re.DOTALL)
        assert len(documents) == size
        for name, body in documents:
            mentions: Counter[str] = Counter()
            for rows in blocks(body):
                assert {(*row[:2], row[9], len(row)) for row in rows} == {(name, "0", "-", 12)}
                found = brackets.mentions([row[-1] for row in rows])  # refuses what is not balanced
                assert not any(one.start < two.start < one.end < two.end for one in found for two in found)
                mentions.update(span.type for span in found)
            assert min(mentions.values()) >= 2


@any_seed
def test_answers_stand_at_their_offsets(seed):
    ids = set()
    for split, size in zip(SPLITS, SMALL["squad"], strict=True):
        content = json.loads(files(seed)[f"squad/{split}-v1.1.json"])
        assert content["version"] == "1.1"
        paragraphs = [each for article in content["data"] for each in article["paragraphs"]]
        assert len(paragraphs) == size
        for paragraph, qa in ((each, qa) for each in paragraphs for qa in each["qas"]):
            assert qa["id"] not in ids
            ids.add(qa["id"])
            assert qa["question"].endswith("?")
            assert len(qa["answers"]) == (1 if split == "train" else 3)
            for answer in qa["answers"]:
                start, text = answer["answer_start"], answer["text"]
                assert text == text.strip() != ""
                assert paragraph["context"][start : start + len(text)] == text


@any_seed
def test_labels_of_pairs_and_trees_are_balanced_and_trees_binary(seed):
    for split, pairs, reviews in zip(SPLITS, SMALL["snli"], SMALL["sst"], strict=True):
        header, *rows = [line.split("\t") for line in lines(seed, f"snli/{split}.tsv")]
        assert header == ["gold_label", "sentence1", "sentence2"]
        trees = lines(seed, f"sst/{split}.txt")
        for tree in trees:
            rest = tree
            while "(" in rest[1:]:  # the innermost nodes become leaves, until one is left
                shorter = re.sub(r"\([0-4] \([0-4] [^() ]+\) \([0-4] [^() ]+\)\)", "(2 node)", rest)
                assert shorter != rest, tree
                rest = shorter
        for labels, known, size in (
            ([label for label, _, _ in rows], LABELS, pairs),
            ([tree[1] for tree in trees], "01234", reviews),
        ):
            counts = Counter(labels)
            assert len(labels) == size
            assert set(counts) == set(known)
            assert max(counts.values()) - min(counts.values()) <= 1


@any_seed
def test_plain_text_is_tokenized_and_senses_point_to_their_words(seed):
    text = {split: lines(seed, f"lm/{split}.txt") for split in SPLITS}
    for split, size in zip(SPLITS, SMALL["lm"], strict=True):
        assert sum(len(line.split(" ")) for line in text[split]) >= size
        assert all(line == " ".join(line.split()) and line[-1] in ".?" for line in text[split])
    header, *rows = [line.split("\t") for line in lines(seed, "lm/senses.tsv")]
    assert header == "split sentence token word sense".split()
    for split, sentence, token, word, sense in rows:
        found = text[split][int(sentence)].split(" ")[int(token)].lower()
        assert found in {inflected(word, tag) for tag in ("NN", "NNS", "VBZ")}
        assert sense.startswith(f"{word}%")


@any_seed
def test_no_sentence_is_in_two_splits(seed):
    def sentences(path: str) -> set[str]:
        if path.startswith("lm"):
            return set(lines(seed, path))
        if path.startswith("snli"):
            return {sentence for line in lines(seed, path)[1:] for sentence in line.split("\t")[1:]}
        if path.startswith("sst"):
            return set(map(words, lines(seed, path)))
        column = 0 if path.startswith("ner") else 3
        return {" ".join(row[column] for row in rows) for rows in blocks(files(seed)[path])}

    for path in "lm/{}.txt ner/{}.iob2 srl/{}.conll coref/{}.conll snli/{}.tsv sst/{}.txt".split():
        train, dev, test = (sentences(path.format(split)) for split in SPLITS)
        assert not (train & dev) | (train & test) | (dev & test), path
        assert path.startswith("lm") or not (dev | test) & sentences("lm/train.txt"), path


@any_seed
def test_only_plain_text_has_evidence_and_without_it_has_no_review_of_dev_and_test(seed):
    opinions = World(seed, SMALL["names"], SMALL["invented"]).opinions
    known, made = (
        "|".join({word for (of, *_), row in opinions.items() if of == kind for _, word in row} or {"-"})
        for kind in ("known", "invented")
    )
    remarks = "|".join(remark for row in REVIEWS["remarks"].values() for remark in row.split("; "))
    explained = re.compile(rf"\b({made}) (?:(?:and|or) (?:{known})\b|{remarks})")
    reviews = {split: {words(tree) for tree in lines(seed, f"sst/{split}.txt")} for split in SPLITS}
    assert not [review for review in set().union(*reviews.values()) if explained.search(review)]
    text = [line for line in lines(seed, "lm/train.txt") if explained.search(line)]
    assert len(text) > 20
    assert not {explained.sub(r"\1", line) for line in text} & (reviews["dev"] | reviews["test"])


def test_the_topic_decides_the_side_of_most_invented_adjectives():
    sides: dict[str, dict[str, int]] = {}
    for (kind, side, topic), row in World(1, 300, 12).opinions.items():
        for _, word in row if kind == "invented" else ():
            sides.setdefault(word, {})[topic] = side
    turning = Counter((each["told"], each["made"]) for each in sides.values() if each["told"] != each["made"])
    assert turning == dict.fromkeys(((1, -1), (-1, 1), (1, 0), (0, 1), (-1, 0), (0, -1)), 24)
    assert sum("" in each for each in sides.values()) == len(sides) - 144 == 6


# The same bytes.


def digest(texts: dict[str, str]) -> str:
    """sha256 over names and texts."""
    return hashlib.sha256("".join(name + text for name, text in texts.items()).encode()).hexdigest()


def test_golden_bytes():
    """Also in a process that hashes otherwise."""
    assert digest(files(1)) == GOLDEN
    code = "from tests.mini.test_mini import digest, files; print(digest(files(1)))"
    environment = {"PYTHONHASHSEED": "1", "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == GOLDEN, run.stderr


def test_another_seed_is_another_world():
    one, two = (set(files(seed)["lm/train.txt"].split("\n")) for seed in (1, 2))
    assert len(one & two) < len(one) / 50


# What it is for.


def test_ambiguous_words_occur_in_each_sense():
    senses = {}
    for seed in range(6):
        for row in files(seed)["lm/senses.tsv"].rstrip("\n").split("\n")[1:]:
            *_, word, sense = row.split("\t")
            senses.setdefault(word, Counter())[sense] += 1
    for word in "bank bat court seal pitcher crane".split():
        assert len(senses[word]) == 2, word
        assert min(senses[word].values()) >= 3, word
    assert any({f"{word}%verb"} < set(counts) for word, counts in senses.items())  # a noun here, a verb there


FOLLOWS, OPEN, EXCLUDES = range(3)  # as the labels: entailment, neutral, contradiction


@any_seed
def test_labels_of_scenes_follow_from_their_parts(seed):
    scenes = Scenes(Chance("test", seed), World(seed, 300, 3))
    decided = 0
    for i in range(90):
        pair = scenes.draw(i % 3)
        premise, hypothesis = pair.scenes
        same = premise.frame == hypothesis.frame
        roles = {"ARG0", *(hypothesis.roles if same else [])}
        relations = {role: said(premise, hypothesis, role) for role in roles}
        found = max(verbs(premise, hypothesis), *relations.values())
        negated = hypothesis.style.negated
        assert LABELS[EXCLUDES - found if negated else found] == pair.label == LABELS[i % 3], pair
        assert relations.get("ARGM-LOC") != EXCLUDES  # another place does not contradict
        assert not negated or max(relations.values()) <= (OPEN if same else FOLLOWS), pair  # of the same scene
        for scene in pair.scenes:
            for slot in scene.frame.slots:
                filler = scene.roles[slot.label]
                assert filler.fits(slot.classes), pair
                decided += has_one_sense(scenes.lexicon, scene, slot, filler)
    assert decided > 20  # of nouns of two senses


def has_one_sense(lexicon: Lexicon, scene: Event, slot: Slot, filler: Participant) -> bool:
    """Whether it is a noun of several senses, of which its sentence leaves one."""
    groups, senses = WORDS["nouns"], []
    if filler.noun.form in CLASS:
        return False
    for noun in (noun for cls in groups for noun in lexicon.nouns[cls].items if noun.form == filler.noun.form):
        fits = noun.cls in slot.classes or ("?" in scene.frame.marks and slot is scene.frame.slots[-1])
        takes = WORDS["modifiers"].get(noun.cls, "").split()
        told = [
            group for group in WORDS["telling"].split() if {*WORDS["adjectives"][group].split()} & {*filler.adjectives}
        ]
        senses.append((noun, fits and {*told} <= {*takes}))
    assert [noun for noun, fits in senses if fits] == [filler.noun]
    return len(senses) > 1


def verbs(premise: Event, hypothesis: Event) -> int:
    """Whether the verb of a hypothesis follows from the premise, is open, or is excluded."""
    one, two = premise.frame.name, hypothesis.frame.name
    if one != two:
        assert two in WORDS["excludes"].get(one, "").split() or one in WORDS["excludes"].get(two, "").split()
        return EXCLUDES
    if hypothesis.verb.lemma in (premise.verb.lemma, one):
        return FOLLOWS
    assert premise.verb.lemma == one  # running may be limping
    return OPEN


def said(premise: Event, hypothesis: Event, role: str) -> int:
    """The same of what the hypothesis says of who or what has a role."""
    told, said = premise.roles.get(role), hypothesis.roles[role]
    if told is None:
        return OPEN
    if told.noun.group != said.noun.group:
        return EXCLUDES
    noun = FOLLOWS if said.noun.form in (told.noun.form, told.noun.group) else EXCLUDES
    if told.noun.form == told.noun.group != said.noun.form:
        noun = OPEN
    adjectives = FOLLOWS if {*said.adjectives} <= {*told.adjectives} else OPEN
    groups = [{*group.split()} for group in WORDS["adjectives"].values()]
    if adjectives and any(group & {*told.adjectives} and group & {*said.adjectives} for group in groups):
        adjectives = EXCLUDES
    same_number = said.number == told.number or (said.number == INDEFINITE and told.number)
    number = FOLLOWS if same_number else OPEN if told.number == INDEFINITE else EXCLUDES
    return max(noun, adjectives, number)


@any_seed
def test_no_other_event_of_a_paragraph_answers_a_question(seed, monkeypatch):
    asked, chosen, world = [], Passages._askable, World(seed, 300, 3)

    def askable(self, event, answering, events):
        asked.append((event, chosen(self, event, answering, events), events))
        return asked[-1][1]

    monkeypatch.setattr(Passages, "_askable", askable)
    for i in range(60):
        Passages(Chance("one answer", seed, i), world).draw()
    alike = 0
    for event, role, events in asked:
        stated = [slot.label for slot in event.frame.slots if slot.label != role and slot.label in event.roles]
        for other in events:
            if role and other is not event and other.frame == event.frame:
                alike += 1
                fitting = [other.roles.get(label) for label in stated]
                assert not all(map(may_be, (event.roles[label] for label in stated), fitting)), (
                    event.roles,
                    other.roles,
                )
    assert alike > 5


def may_be(said: Participant, other: Participant | None) -> bool:
    """Whether the words of a question, a name or a hypernym, fit another participant, as far as a reader knows."""
    if other is None:
        return True
    if said.names:
        return said.parts == other.parts
    return said.noun.group == other.noun.group or bool(other.names and said.noun.cls == other.noun.cls)


@any_seed
def test_the_other_tasks_are_as_a_reader_would_have_them(seed):
    world = World(seed, 300, 3)
    for i in range(40):
        passage = Passages(Chance("passages", seed, i), world).draw()
        for question, answers in passage.questions:
            assert answers[0]["text"].lower() not in question.text.lower().split(" ")
            assert not re.search(r" (in|to|from|for|of|about) (in|on|near) ", question.text)
        clusters = {}
        for told in Stories(Chance("stories", seed, i), world).draw():
            said = {}
            for span in told.spans[MENTION]:
                text = " ".join(told.forms[span.start : span.end]).lower()
                assert span.type not in said or text in PRONOUNS, told.text  # a reader takes a name for another one
                clusters.setdefault(span.type, []).append(text)
                said[span.type] = text
            assert ", 's" not in told.text
        for first, *_rest in clusters.values():
            assert first not in PRONOUNS  # introduced before


PRONOUNS = {"she", "he", "it", "they", "her", "him", "them", "his", "its", "their"}


@any_seed
def test_reviews_are_english_and_neutral_ones_have_the_constructions_of_the_others(seed):
    trees = [tree for split in SPLITS for tree in lines(seed, f"sst/{split}.txt")]
    text = " ".join(map(words, trees))
    extreme = "|".join(f"{REVIEWS['values']['known'][value]}".replace(" ", "|") for value in (4, -4))
    assert not re.search(rf"will not \w+ everyone|(very|not|from|all|slightly) ({extreme})\b|\b(\w+) and \3\b", text)
    neutral = " ".join(words(tree) for tree in trees if tree[1] == "2")
    assert re.search(r" (is|was|seems) \w+ \.", neutral)
    assert re.search(r" on its \w+ \w+ ", neutral)


def test_invented_words_are_neither_english_nor_offensive():
    english = english_forms()
    assert {"never", "last", "given", "long", "past", "morning", "drastic", "revered", "tusk"} <= english
    for seed in range(3):
        for word in World(seed, 300, 12).lexicon.made:
            assert not forms(word) & english, word
            assert not [part for part in SYLLABLES["avoided"] if any(part in form for form in forms(word))], word


@cases("""
    lemma   | tag | form
    outbid  | VBD | outbid
    cancel  | VBD | cancelled
    begin   | VBG | beginning
    stale   | RB  | stalely
    dull    | RB  | dully
    good    | RB  | well
    drampic | RB  | drampically
""")
def test_forms(lemma, tag, form):
    assert inflected(lemma, tag) == form


# On disk and on the command line.

TINY = {name: [1, 1, 1] for name in SMALL if name not in ("names", "invented")} | {"names": 200, "invented": 2}


@pytest.fixture(scope="module")
def whole() -> dict[str, str]:
    return dict(Builder(1, valid(mini.Sizes, TINY)).files())


def written(folder: Path) -> set[str]:
    """The files in a folder, but those of locks."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"lock"}


def test_ensure_generates_once_mends_what_is_damaged_and_refuses_another_data_set(tmp_path, whole):
    folder = mini.ensure_data(tmp_path / "a" / "b", 1, TINY)
    assert written(folder) == {*whole, mini.MANIFEST}
    text, train = folder / "ner/dev.iob2", folder / "lm/train.txt"
    stamps = [path.stat().st_mtime_ns for path in (text, train)]
    assert mini.ensure_data(folder, 1, TINY) == folder
    assert [path.stat().st_mtime_ns for path in (text, train)] == stamps
    text.write_text("Tarvel\tB-PER\n")
    mini.ensure_data(folder, 1, TINY)
    assert text.read_text() == whole["ner/dev.iob2"]
    assert train.stat().st_mtime_ns == stamps[1]
    for name in ("ner/dev.iob2", mini.MANIFEST):  # somebody else could have written it
        (folder / name).chmod(0o666)
        mini.ensure_data(folder, 1, TINY)
        assert (folder / name).stat().st_mode & 0o777 != 0o666
    with refuses("another seed, size, version or language"):
        mini.ensure_data(folder, 2, TINY)


def test_one_task_makes_its_own_files_and_the_same_text(tmp_path, whole):
    mini.ensure_data(tmp_path, 1, TINY, ["ner"])
    assert written(tmp_path) == {mini.MANIFEST, *(name for name in whole if name.startswith(("ner/", "lm/")))}
    text = tmp_path / "lm/train.txt"
    stamp = text.stat().st_mtime_ns
    mini.ensure_data(tmp_path, 1, TINY, ["snli", "ner"])  # the text and NER stay
    assert text.stat().st_mtime_ns == stamp
    mini.ensure_data(tmp_path, 1, TINY)
    assert {name: (tmp_path / name).read_text() for name in whole} == whole
    manifest = (tmp_path / mini.MANIFEST).read_bytes()
    mini.ensure_data(tmp_path / "at once", 1, TINY)
    assert (tmp_path / "at once" / mini.MANIFEST).read_bytes() == manifest


def test_a_damaged_manifest_is_made_again(tmp_path):
    manifest = mini.ensure_data(tmp_path, 1, TINY) / mini.MANIFEST
    content = manifest.read_bytes()
    for damaged in (content.replace(b'"seed": 1', b'"seed": 0'), content[:90], b""):
        manifest.write_bytes(damaged)
        mini.ensure_data(tmp_path, 1, TINY)
        assert manifest.read_bytes() == content


def test_a_text_is_mended_before_a_pretraining_reads_it(tmp_path, whole):
    mini.mend(tmp_path)  # no data set: left alone
    text = mini.ensure_data(tmp_path, 1, TINY, ["ner"]) / "lm/train.txt"
    text.write_text("Ida sang .\n")
    mini.mend(tmp_path)
    assert text.read_text() == whole["lm/train.txt"]
    assert not (tmp_path / "srl").exists()
    (tmp_path / mini.MANIFEST).write_bytes(b"")
    with refuses("generate the data again"):
        mini.mend(tmp_path)


def test_ensure_follows_the_configuration(tmp_path, whole):
    roots = RunConfig.model_construct(data_root=None, cache_root="")
    scale = ScaleConfig(name="mini", folder=str(tmp_path), seed=1, version=mini.VERSION, sizes=TINY, only="sst5")
    assert MiniData(scale, roots).make() == tmp_path
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"lm", "sst"}
    assert (tmp_path / "lm/train.txt").read_text() == whole["lm/train.txt"]
    with refuses("generates version"):
        MiniData(scale.model_copy(update={"version": 0}), roots).make()


@cases("""
    sizes
    {"nerr": [1, 1, 1]}
    {"ner": [1, 1]}
    {"ner": 5}
    {"lm": [0, 1, 1]}
    {"names": 3}
""")
def test_wrong_sizes_are_named(sizes):
    with refuses(f"sizes.{next(iter(sizes))}"):
        mini.ensure_data("", sizes=sizes)


# The language is part of the data's identity.


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A language whose table of words has a comment and a word more."""

    def edit(text: str) -> None:
        folder = tmp_path / "language"
        if not folder.exists():
            shutil.copytree(mini.LANGUAGE, folder)
        with (folder / "words.yaml").open("a") as file:
            file.write(text)
        monkeypatch.setattr(mini, "LANGUAGE", folder)
        mini.edited_language.cache_clear()

    yield edit
    monkeypatch.undo()
    mini.edited_language.cache_clear()


def mini_data(folder: Path) -> MiniData:
    return MiniData(
        ScaleConfig(name="mini", folder=str(folder), version=mini.VERSION, sizes=TINY),
        RunConfig.model_construct(data_root=None, cache_root=""),
    )


def test_an_edited_language_is_another_data_set_and_a_comment_is_not(edited, tmp_path):
    made = mini_data(tmp_path / "made")
    assert "language" not in made.recipe()
    mini.ensure_data(tmp_path / "made", sizes=TINY, tasks=[])
    edited("# a remark\n")
    assert "language" not in made.recipe()
    edited("another: word\n")
    assert made.recipe()["language"]["words.yaml"] not in ("", mini.SHIPPED["words.yaml"])
    with refuses(r"another seed, size, version or language .*conf/scale/mini\.yaml"):
        mini.ensure_data(tmp_path / "made", sizes=TINY, tasks=[])


def test_tables_that_do_not_fit_together_are_one_line_that_names_the_file(edited, monkeypatch, tmp_path):
    monkeypatch.delitem(WORDS, "modifiers")
    make = mini_data(tmp_path).make
    with pytest.raises(KeyError):  # with the tables as they come, it is a fault of the generator
        make()
    edited("another: word\n")
    with refuses(r"language/words\.yaml: .*KeyError: 'modifiers'"):
        make()
    assert not written(tmp_path / "ner")

"""Seed ensembles: what several models answer together, against brute force and by hand; the command and its rows."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

from elmo_bench.commands.compare.ensemble import ensemble, seeds_of
from elmo_bench.records import items, store
from elmo_bench.reporting.tables import tables
from elmo_bench.system.errors import UserError
from elmo_bench.tagging.head import TaggingScores
from elmo_bench.task import Batch
from elmo_bench.text.vocabulary import Vocabulary
from elmo_bench.trained import ensemble_store
from elmo_bench.trained.ensemble import Votes, task_ensemble
from tasks.coref import ensemble as coref
from tasks.coref.head import CorefHead, CorefScores, DocumentScores
from tasks.ner import ensemble as ner
from tasks.ner.head import NerHead
from tasks.snli import ensemble as snli
from tasks.snli.head import SnliHead, SnliScores
from tasks.squad import ensemble as squad
from tasks.squad.head import SquadHead, SquadScores
from tasks.srl import ensemble as srl
from tasks.srl.head import SrlScores
from tasks.sst5 import ensemble as sst5
from tasks.sst5.head import Sst5Head, Sst5Scores
from tests import toy
from tests.benchmarks.ner import test_ner_head
from tests.benchmarks.srl.test_srl_head import ROWS, small
from tests.benchmarks.sst5 import test_sst5_head

LABELS = {"labels": Vocabulary(["yes", "no", "perhaps"], special=False)}
CONTEXTS = [["Ida", "Bell", "sang"], ["It", "rained", "in", "May", "again"]]


def masks(*lengths):
    return torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def questions():
    return [
        {
            "context": [words],
            "text": " ".join(words),
            "starts": [sum(map(len, words[:i])) + i for i in range(len(words))],
        }
        for words in CONTEXTS
    ]


def log_shares(*lengths):
    return torch.randn(len(lengths), max(lengths)).masked_fill(~masks(*lengths), -torch.inf).log_softmax(1)


def document():
    best = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])  # of four spans: the nearest, the one before
    first = torch.arange(4)
    return CorefScores(None, [DocumentScores(first, first, torch.zeros(4), best)])


def ner_case():
    head = NerHead(12, 0, 12, test_ner_head.TAGS, hidden=(3,), crf_ends=True)
    rows = [{"tokens": ["w"] * n} for n in (3, 2)]
    return ner, head, TaggingScores(None, torch.randn(2, 3, len(test_ner_head.TAGS["labels"])), masks(3, 2)), rows


CASES = {
    "ner": ner_case,
    "snli": lambda: (snli, SnliHead(6, 0, 6, LABELS, hidden=3), SnliScores(None, torch.randn(4, 3)), [{}] * 4),
    "sst5": lambda: (
        sst5, Sst5Head(6, 0, 6, {}, 7, 4, 5, test_sst5_head.RELU), Sst5Scores(None, torch.randn(4, 5)), [{}] * 4,
    ),
    "squad": lambda: (
        squad, SquadHead(6, 0, 6, {}, hidden=3, max_answer=2), SquadScores(None, log_shares(3, 5), log_shares(3, 5)),
        questions(),
    ),
    "srl": lambda: (srl, small(), SrlScores(None, torch.randn(4, 4, 5), masks(4, 4, 1, 2)), ROWS),
    "coref": lambda: (
        coref,
        CorefHead(7, 0, 7, {"genres": Vocabulary(["-"])}, hidden=3, max_span_width=2, ffnn=3),
        document(), [{"sentences": [["Ida", "she", "her", "Bell"]]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("task", CASES)
def test_models_that_agree_answer_as_each_of_them(task, members):
    torch.manual_seed(4)
    ours, head, scores, rows = CASES[task]()
    batch = Batch(rows, {}, {})
    opinions = ours.opinions(head, scores, batch)
    assert len(opinions) == len(rows)
    assert ours.agreed([opinions] * members, head, rows) == head.decode(scores, batch)


def test_taggers_agree_on_the_best_mean_score():
    torch.manual_seed(5)
    names = Vocabulary(["O", "B-X", "I-X"], special=False)
    heads = [NerHead(4, 0, 4, {"labels": names}, hidden=(2,), crf_ends=True) for _ in range(2)]
    for head in heads:
        torch.nn.init.normal_(head.crf.transitions)
    emissions, mask, rows = [torch.randn(1, 3, 3) for _ in heads], masks(3), [{"tokens": ["w"] * 3}]
    opinions = [
        ner.opinions(head, TaggingScores(None, x, mask), Batch(rows, {}, {}))
        for head, x in zip(heads, emissions, strict=True)
    ]
    (answer,) = ner.agreed(opinions, heads[0], rows)

    def mean(path):
        gold = torch.tensor([path])
        return sum(-float(head.crf(x, gold, mask).detach()) for head, x in zip(heads, emissions, strict=True))

    allowed = [path for path in itertools.product(range(3), repeat=3) if mean(path) > -1e6]
    assert answer == [names.items[tag] for tag in max(allowed, key=mean)]


def test_classifiers_agree_on_the_best_mean_probability():
    _, head, *_ = CASES["snli"]()
    logits = [torch.tensor([shares]).log() for shares in ([0.4, 0.35, 0.25], [0.4, 0.35, 0.25], [0.0, 0.9, 0.1])]
    members = [snli.opinions(head, SnliScores(None, each), Batch([{}], {}, {})) for each in logits]
    assert snli.agreed(members, head, [{}]) == ["no"]  # although two of three say yes


def test_readers_agree_on_the_best_span_of_mean_probabilities():
    torch.manual_seed(6)
    _, head, _, rows = CASES["squad"]()
    scores = [SquadScores(None, log_shares(3, 5), log_shares(3, 5)) for _ in range(3)]
    members = [squad.opinions(head, each, Batch(rows, {}, {})) for each in scores]
    for i, (answer, words) in enumerate(zip(squad.agreed(members, head, rows), CONTEXTS, strict=True)):
        start, end = (
            torch.stack([getattr(each, side)[i].exp() for each in scores]).mean(0) for side in ("start", "end")
        )
        spans = [(first, last) for first in range(len(words)) for last in (first, first + 1) if last < len(words)]
        first, last = max(spans, key=lambda span: float(start[span[0]] * end[span[1]]))
        assert answer["answer"] == " ".join(words[first : last + 1])


def test_links_of_the_majority_make_clusters():
    a, b, c, d, e = ((i, i) for i in range(5))
    assert coref.majority([[[a, b, c]], [[a, b]], [[b, c], [d, e]]]) == [[a, b, c]]
    assert coref.majority([[[a, b], [c, d]], [[a, b], [c, d], [b, c]]]) == [[a, b], [c, d]]  # one of two is no majority
    assert coref.majority([[[a, c], [b, d]], [[a, c], [b, d]], [[a, b, c, d]]]) == [[a, c], [b, d]]
    assert coref.majority([[[a]], [[a]], [[a, b]]]) == [[a]]
    assert coref.majority([[[a], [b]], [[a, b]], [[a, b], [e]]]) == [[a, b]]
    assert coref.majority([[], []]) == []


def test_a_chain_of_links_is_one_cluster_in_any_order():
    chain = [[(0, 0), (3, 3)], [(3, 3), (1, 1)], [(1, 1), (2, 2)]]
    for order in itertools.permutations(chain):
        assert coref.majority([list(order)]) == [[(i, i) for i in range(4)]]


def test_without_a_module_of_its_own_a_task_votes():
    assert isinstance(task_ensemble("tests.toy.ToyReader"), Votes)
    assert task_ensemble("tasks.sst5.reader.Sst5Reader") is sst5
    votes = Votes().agreed([[["A", "B"], 1], [["A", "A"], 2], [["A", "B"], 3]], None, [{}, {}])  # type: ignore[arg-type]
    assert votes == [["A", "B"], 1]


# The command.


def test_seeds_are_a_number_or_a_list():
    assert seeds_of("3") == [1, 2, 3]
    assert seeds_of("4,2") == [4, 2]
    for wrong in ("1", "0", "", "a", "1,1", "1,", "-2"):
        with pytest.raises(UserError, match="seeds="):
            seeds_of(wrong)


@pytest.mark.usefixtures("stand_in")
def test_an_ensemble_is_recorded_and_has_a_row(bench, monkeypatch):
    for seed in (1, 2, 3):
        bench.train(f"seed={seed}")
    path = ensemble([1, 2, 3], bench.overrides())
    record = ensemble_store.read(path)
    assert record["seeds"] == [1, 2, 3]
    assert record["method"] == "votes"
    items.check(items.read(items.path_of(path)), record["metrics"], toy.ToyMetric.from_totals)
    (table,) = tables.sections(store.read_all(bench.results))
    single, together = table.rows
    assert together[0] == f"{single[0]}: an ensemble (votes)"
    assert together[2:5] == ("1-3", *(f"{record['metrics'][split]['accuracy']:.2f}" for split in ("dev", "test")))
    monkeypatch.setattr("elmo_bench.trained.ensemble.make", None)  # what is recorded is not made again
    assert ensemble([3, 2, 1], bench.overrides()) == path


@pytest.mark.usefixtures("stand_in")
def test_what_is_missing_is_named_with_the_command_that_makes_it(bench):
    record = bench.train("seed=1")
    with pytest.raises(
        UserError, match=r"no recorded run of seed 2, 3; train it with: elmo-bench train -m .*task=toy"
    ) as error:
        ensemble([1, 2, 3], bench.overrides())
    assert str(error.value).endswith(" seed=2,3")
    bench.train("seed=2")
    (bench.results / record["checkpoint"]).unlink()
    with pytest.raises(UserError, match=r"without its checkpoint: seed 1; train it with: .* force=true seed=1$"):
        ensemble([1, 2], bench.overrides())
    assert not (bench.results / "ensembles").exists()


@pytest.mark.usefixtures("stand_in")
def test_a_checkpoint_of_another_model_is_refused(bench):
    paths = [bench.results / bench.train(f"seed={seed}")["checkpoint"] for seed in (1, 2)]
    saved = torch.load(paths[1], weights_only=True)
    for change in ({"bilm_sha256": "0" * 64}, {"vocabularies": {}}, {"state_dict": {}}):
        torch.save({**saved, **change}, paths[1])
        with pytest.raises(UserError, match=r"best\.ckpt: (was trained with|does not fit)"):
            ensemble([1, 2], bench.overrides())
    assert not (bench.results / "ensembles").exists()


@pytest.mark.usefixtures("stand_in")
def test_a_damaged_record_of_an_ensemble_is_named(bench):
    for seed in (1, 2):
        bench.train(f"seed={seed}")
    path = ensemble([1, 2], bench.overrides())
    text = path.read_text()
    path.write_text(text.replace('"votes"', '"notes"'))
    with pytest.raises(UserError, match="ensemble"):
        tables.sections(store.read_all(bench.results))
    path.write_text(json.dumps({"task": "toy"}))
    with pytest.raises(UserError, match="not the record of an ensemble: it lacks scale"):
        ensemble_store.read(path)

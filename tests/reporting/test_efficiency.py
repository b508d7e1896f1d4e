"""Updates until the baseline's best dev score is passed."""

from elmo_bench.reporting.statistics.findings import saved, savings
from tests.records.test_records import fake


def record(scores, seed=1, step=10, **config):
    task = {"monitor": "f1", "batch": {"batch_size": 8}}
    updates = [step * (i + 1) for i in range(len(scores))]
    history = {"epoch": list(range(len(scores))), "dev.f1": scores, "dev.recall": [99.0] * len(scores)}
    chosen = {"task": task, "trainer": {"devices": 1}, "elmo": {"where": "none"}, **config}
    return fake("none", seed, history=history | {"updates": updates}, config=chosen)


def test_equal_is_not_passed_and_the_first_best_epoch_counts():
    baseline = record([1.0, 3.0, 2.0, 3.0])
    assert saved(baseline, record([3.0, 3.0])) is None
    assert saved(baseline, record([3.5, 1.0])) == (50.0, 50.0)  # an epoch is half of the baseline's updates
    assert saved(baseline, record([1.0, 1.0, 1.0, 3.5, 4.0])) == (-100.0, 50.0)  # more updates


def test_runs_are_paired_by_seed():
    baselines = [record([2.0], seed) for seed in (1, 2, 3)]
    elmos = [record([3.0], 1, step=5), record([3.0], 3, step=10), record([3.0], 4)]
    assert savings(baselines, elmos) == [(50.0, 100.0), (0.0, 100.0)]

"""Every row of results/replication.md is computed again from the records, by numpy and scipy alone."""

import json
import re
from collections import defaultdict
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from elmo_bench.system.places import CONF, RECORDED
from tests.fakes import for_each

pytestmark = pytest.mark.slow
F1 = ("muc", "b3", "ceafe")
DIFFERENCES = {
    "first_layer": lambda s: [s[1] - each for i, each in enumerate(s) if i != 1],
    "spread": lambda s: [a - b for a, b in permutations(s, 2)],
    "lower_layers": lambda s: [np.mean(s[:-1]) - s[-1]],
}


@cache
def record(path):
    return json.loads((RECORDED / path).read_text())


@cache
def parts(path):
    """(K,) what each cluster adds to the metric of a run on test, in percent, by its derivative on paper."""
    with np.load((RECORDED / path).with_suffix(".items.npz")) as file:
        named = {
            key.removeprefix("test/statistics/"): file[key].astype(float) for key in file if key.startswith("test/s")
        }
        of = file["test/clusters"] if "test/clusters" in file else np.arange(len(next(iter(named.values()))))
    sums = {key: np.bincount(of, values) for key, values in named.items()}

    def share(top, bottom):  # of a ratio of sums
        return (top - top.sum() / bottom.sum() * bottom) / bottom.sum()

    if "right" in sums:
        return 100 * share(sums["right"], sums["total"])
    if "questions" in sums:
        return 100 * share(sums["f1"], sums["questions"])
    if "tp" in sums:
        return 100 * share(2 * sums["tp"], 2 * sums["tp"] + sums["fp"] + sums["fn"])
    total = 0
    for name in F1:
        ways = [(sums[f"{name}_{way}_numerator"], sums[f"{name}_{way}_denominator"]) for way in ("precision", "recall")]
        (p, r), (dp, dr) = ([top.sum() / bottom.sum() for top, bottom in ways], [share(*way) for way in ways])
        total = total + 200 / 3 * (r**2 * dp + p**2 * dr) / (p + r) ** 2
    return total


def score(path):
    return record(path)["metrics"]["test"][record(path)["config"]["task"]["monitor"]]


@cache
def everything(scale, task):
    return [str(path.relative_to(RECORDED)) for path in sorted((RECORDED / "runs" / scale / task).glob("*.json"))]


def alike(one, other):
    def inputs(each):
        settings = each["settings"]
        digests = re.findall(
            "[0-9a-f]{64}", json.dumps([settings.get("vectors"), settings["task"].get("words", {}).get("path")])
        )
        return each["data_sha256"], digests, each["config"].get("fraction", 1)

    return inputs(record(one)) == inputs(record(other))


def pooled(more, less):
    """The variance of a score over all arms of the task, with its degrees; None where Bartlett's test objects."""
    groups = defaultdict(list)
    first = record(more[0])
    for path in everything(first["scale"], first["task"]):
        if alike(path, more[0]) or alike(path, less[0]):
            run = record(path)
            groups[run["group"], run["data_sha256"], str(run["settings"].get("bilm"))].append(score(path))
    several = [each for each in groups.values() if len(each) > 1 and np.ptp(each)]
    if len(several) < 2 or stats.bartlett(*several).pvalue < 0.05:
        return None
    degrees = sum(len(each) - 1 for each in several)
    return sum(np.var(each, ddof=1) * (len(each) - 1) for each in several) / degrees, degrees


def by_bilm(paths):
    found = defaultdict(list)
    for path in paths:
        found[(record(path)["config"].get("bilm") or {}).get("seed", 1)].append(path)
    return [*found.values()]


def gain(more, less, factors=(1, 1)):
    """A difference of means with its standard error and degrees."""
    bilms = by_bilm(more)
    shared = not any(record(path)["arm"] == "elmo" for path in less)
    if len(bilms) == 1:
        arms = [[(score(path), parts(path)) for path in more], [(score(path), parts(path)) for path in less]]
    else:
        means = [(np.mean([score(p) for p in of]), np.mean([parts(p) for p in of], axis=0)) for of in bilms]
        arms = [means, [(score(path), parts(path)) for path in less]]
        assert shared  # of what is recorded
    values, added, noises, options = [], np.zeros(1), [], []
    for sign, factor, arm in zip((1, -1), factors, arms, strict=True):
        scores, of = np.array([one for one, _ in arm]) * factor, np.stack([part for _, part in arm]) * factor
        values.append((scores, factor))
        added = added + sign * of.mean(0)
        noises.append(((of - of.mean(0)) ** 2).sum() / (len(scores) - 1) if len(scores) > 1 else 0)
    k, several = len(added), [(s, f) for s, f in values if len(s) > 1]
    noise = sum((each or max(noises)) / len(s) for each, (s, _) in zip(noises, values, strict=True))
    one, squares = pooled(more, less), added**2
    degrees = min(max(3 * squares.sum() ** 2 / (squares**2).sum() - 1, 1), k - 1)
    if not several:  # one seed against one: over examples alone
        options.append((0, (k / (k - 1) * squares.sum()) ** 0.5, degrees))
    for part in (None, one) if several else ():
        own = [s if len(s) > 1 else several[0][0] for s, _ in values]  # one seed varies as those of the other arm
        seeds = [(one.var(ddof=1) / len(s), len(one) - 1) for one, (s, _) in zip(own, values, strict=True)]
        if len(several) < 2:
            seeds = [(sum(v for v, _ in seeds), seeds[0][1])]
        if part:
            theirs = [(part[0] * f**2 / len(s), part[1]) for s, f in values]
            seeds = [(sum(v for v, _ in theirs), part[1])] if len(bilms) == 1 else [seeds[0], theirs[1]]
        items = k / (k - 1) * squares.sum() - min(k / (k - 1) * noise, sum(v for v, _ in seeds))
        every = [*seeds, (max(items, 0), degrees)]
        variance = sum(v for v, _ in every)
        df = variance**2 / sum(v**2 / d for v, d in every)
        options.append((stats.t.ppf(0.975, df) * variance**0.5, variance**0.5, df))
    _, error, df = max(options)
    return values[0][0].mean() - values[1][0].mean(), error, df


def errors(more, less):
    value, *_ = gain(more, less)
    wrong = 100 - np.mean([score(path) for path in less])
    share = value / wrong
    return (100 * share, *gain(more, less, (100 / wrong, 100 * (1 - share) / wrong))[1:])


def updates(more, less):
    saved, epochs = defaultdict(list), []
    theirs = {record(path)["seed"]: record(path) for path in less}
    for path in more:
        run, other = record(path), theirs.get(record(path)["seed"])
        if other is None:
            continue
        dev, ours = (each["history"][f"dev.{run['config']['task']['monitor']}"] for each in (other, run))
        first = next(i for i, each in enumerate(ours) if each > max(dev))
        needed = other["history"]["updates"][dev.index(max(dev))]
        saved[run["config"]["bilm"].get("seed", 1)].append(100 * (1 - run["history"]["updates"][first] / needed))
        epochs.append(100 * other["history"]["updates"][0] / needed)
    values = [np.mean(each) for each in saved.values()] if len(saved) > 1 else next(iter(saved.values()))
    error, df = stats.sem(values), len(values) - 1
    return np.mean(values), max(error, np.mean(epochs) / 2 / stats.t.ppf(0.975, df)), df


def weights(paths, measure, place):
    """The smallest of several means, and its interval; p is of the region above the bound."""
    of = [
        [DIFFERENCES[measure](record(p)["layer_weights"][place][record(p)["epoch"] - 1]) for p in each]
        for each in by_bilm(paths)
    ]
    units = np.array([np.mean(each, axis=0) for each in of] if len(of) > 1 else of[0])
    means, error, df, m = units.mean(0), stats.sem(units), len(units) - 1, units.shape[1]
    low = (means - stats.t.ppf(0.975, df) * error).min()
    return means.min(), low, (means + stats.t.ppf(1 - 0.025 / m, df) * error).min(), (means, error, df, m)


def p_of(value, error, df, low, high):
    def sure(distance):  # one-sided
        return stats.t.sf(distance / error, df)

    inside, outside = max(sure(value - low), sure(high - value)), min(sure(low - value), sure(value - high))
    return min(1, 2 * min(inside, outside))


def findings():
    """By their words."""
    pages = [
        yaml.safe_load(path.read_text())
        for path in [*(CONF / "sweep").glob("*.yaml"), *(CONF / "analysis").glob("*.yaml")]
    ]
    listed = [
        each for page in pages for each in [*page.get("findings", []), *(page.get("table") or {}).get("findings", [])]
    ]
    return {each["finding"]: each for each in listed}


def rows(scale):
    """(finding, task, runs of either arm, value, ends of the interval, p) of the page."""
    text = (
        (RECORDED / "replication.md")
        .read_text()
        .partition(f"# Runs and commands, scale {scale}")[2]
        .partition("\n# ")[0]
    )
    for block in text.split("\n### ")[1:]:
        finding = block.partition("\n")[0]
        for line in block.splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if len(cells) > 5 and cells[0] not in ("task", "---") and " to " in cells[3]:
                value, ends = float(cells[2].split()[0]), [float(end) for end in cells[3].split(" to ")]
                runs = [re.findall(r"\((runs/[^)]*)\)", arm) for arm in line.split(" against ")]
                yield finding, cells[0], runs, value, ends, cells[4]


@for_each("scale", "open mini")
def test_every_row_with_an_interval_follows_from_its_runs(scale):
    known, seen = findings(), set()
    for words, task, runs, value, ends, p in rows(scale):
        finding, arms = known[words], [arm for arm in runs if arm]
        low, high = (
            sign * np.inf if end is None else end
            for sign, end in zip((-1, 1), finding.get("region", [0, None]), strict=True)
        )
        measure = finding.get("measure", "score")
        seen.add(measure if arms else "study")
        if measure in DIFFERENCES:
            found, *interval, (means, error, df, m) = weights(arms[0], measure, finding["place"])
            inside, outside = (
                stats.t.sf((means - low) / error, df).max(),
                m * stats.t.sf((low - means) / error, df).min(),
            )
            probability = min(1, 2 * min(inside, outside))
        else:
            made = {"score": gain, "error": errors, "updates": updates}
            found, error, df = made[measure](*arms) if arms else study(scale, finding, task)
            half = stats.t.ppf(0.975, df) * error
            interval, probability = (found - half, found + half), p_of(found, error, df, low, high)
        rounding = 0.051 if finding.get("unit") == "%" or measure in ("error", "updates") else 0.0051
        assert [found, *interval] == pytest.approx([value, *ends], abs=rounding), (words, task)
        if not p:
            assert 1 in map(len, arms), (words, task)  # of one seed there is no verdict
            continue
        assert p == "<0.001" if probability < 0.001 else float(p) == pytest.approx(probability, abs=0.0006), (
            words,
            task,
        )
    assert seen == {"score", "error", "updates", "first_layer", "spread", "lower_layers", "study"}


def study(scale, finding, task):
    """The recorded interval, with its degrees; a difference of layers in either order."""
    tasks = {"SQuAD": "squad", "SNLI": "snli", "NER": "ner", "SST-5": "sst5", "-": scale}
    for path in sorted(Path(RECORDED / "analysis" / scale).glob("*/*.json")):
        for cell in json.loads(path.read_text())["cells"]:
            layers = {cell.get("layer"), cell.get("minus")} == {finding.get("layer"), finding.get("minus")}
            if (cell["quantity"], cell["source"]) == (finding["quantity"], tasks[task]) and layers:
                sign = 1 if cell.get("layer") == finding.get("layer") else -1
                df = cell.get("degrees", cell["clusters"] - 1)
                return sign * cell["value"], (cell["high"] - cell["low"]) / 2 / stats.t.ppf(0.975, df), df
    raise LookupError(finding)

"""The rule for settings: the baseline's dev score chooses them, whatever ELMo gains."""

import elmo_bench
from elmo_bench.system import places
from tests import settle
from tests.fakes import cases
from tests.records.test_records import fake


def trained(monkeypatch, scores, allowed=10):
    """Pretended runs whose dev scores follow from arm and learning rate; returns the overrides of each."""
    calls = []

    def train(task, given):
        calls.append(given)
        words = dict(one.split("=") for one in given)
        dev = scores[words["arm"], words.get("task.optimizer.lr")]
        history = {"epoch": [*range(len(dev))], "updates": [10 * (i + 1) for i in range(len(dev))], "dev.f1": dev}
        arm, scored = "none" if words["arm"] == "baseline" else "input", {"dev": {"f1": max(dev)}, "test": {"f1": 0.0}}
        made = fake(arm, history=history, epoch=dev.index(max(dev)) + 1, metrics=scored)
        made.config["task"]["fit"] = {"epochs": allowed}
        return made

    monkeypatch.setattr(elmo_bench, "train", train, raising=False)
    return calls


LEVEL = [50.0, *[60.0] * 9]


def test_the_baselines_dev_score_chooses_and_elmo_follows_without_a_further_change(monkeypatch):
    """The gain of the other setting would be larger."""
    calls = trained(monkeypatch, {
        ("baseline", "1"): LEVEL, ("baseline", "2"): [x + 1 for x in LEVEL], ("elmo", "1"): [x + 9 for x in LEVEL],
        ("elmo", "2"): [x + 2 for x in LEVEL],
    })  # fmt: skip
    text = settle.settled("ner", "mini", 1, "own", ["task.optimizer.lr=1,2", "trainer=cpu"])
    assert "The baseline's best dev score chooses task.optimizer.lr=2" in text
    assert "| task.optimizer.lr=2 | elmo | 1 | 62.00 | 0.00 |" in text
    assert "The epochs are enough" in text
    assert [(each[1], each[3]) for each in calls if each[4] == "trainer=cpu"] == [
        ("arm=baseline", "task.optimizer.lr=1"), ("arm=baseline", "task.optimizer.lr=2"),
        ("arm=elmo", "task.optimizer.lr=2"),
    ]  # fmt: skip


@cases("""
    end          | allowed | enough
    [60.1, 60.1] | 10      | true
    [60.0, 60.3] | 10      | false
    [60.0, 60.3] | 20      | true
""")
def test_neither_arm_may_gain_in_the_last_fifth_of_the_epochs_it_was_allowed(monkeypatch, end, allowed, enough):
    """A run that had stopped before has gained nothing in them."""
    trained(monkeypatch, {("baseline", None): LEVEL, ("elmo", None): [*LEVEL[:8], *end]}, allowed)
    text = settle.settled("ner", "mini", 1, "own", [])
    assert ("The epochs are enough" in text) == enough
    assert ("More epochs are needed: elmo gained" in text) != enough


def test_the_table_stands_in_the_tasks_page_once_for_each_scale(tmp_path, monkeypatch, file):
    monkeypatch.setattr(places, "ROOT", tmp_path)
    page = file("# NER\n\nWords.\n", "tasks/ner/README.md")
    for scale, text in (("mini", "first"), ("open", "other"), ("mini", "second")):
        settle.write("ner", scale, text)
    assert page.read_text().startswith("# NER\n\nWords.\n\n## Settings at mini\n\n<!-- settings at mini")
    assert "first" not in page.read_text()
    assert [page.read_text().count(text) for text in ("second", "other", "## Settings")] == [1, 1, 2]

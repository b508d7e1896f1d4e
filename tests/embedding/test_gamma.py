"""elmo.gamma=false: equation (1) without its scale, at every place."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("stand_in")
def test_without_gamma_a_run_has_one_parameter_less_at_each_place(bench):
    changes, places = ["elmo.where=both", "task.fit.epochs=2"], ["input", "output"]
    learnt, fixed = bench.train(*changes), bench.train(*changes, "elmo.gamma=false")
    assert learnt.parameters - fixed.parameters == len(places)
    assert fixed.gamma == {place: [1.0, 1.0] for place in places}
    assert all(learnt.gamma[place][-1] != 1.0 for place in places)
    assert (fixed.arm, fixed.variant["elmo.gamma"], fixed.settings["elmo"]["gamma"]) == ("elmo", False, False)
    assert fixed.run != learnt.run


@pytest.mark.usefixtures("stand_in")
def test_one_layer_without_gamma_leaves_nothing_to_learn_in_the_mix(bench):
    plain = bench.train("elmo.layers=last", "elmo.gamma=false", "elmo.lambda=5", "task.fit.epochs=2")
    assert plain.layer_weights == {"input": [[0.0, 0.0, 1.0]] * 2}
    assert (
        plain.history["loss"]
        == bench.train("elmo.layers=last", "elmo.gamma=false", "task.fit.epochs=2").history["loss"]
    )  # there is no weight for the penalty either

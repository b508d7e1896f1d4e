"""elmo.gamma=false: equation (1) without its scale, at every place."""

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

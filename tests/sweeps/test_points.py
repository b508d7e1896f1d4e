"""The ids and changes of the points of all sweeps stay what they are."""

import pytest

from elmo_bench.configuration import composing, pages
from elmo_bench.identity.settings import Identity
from elmo_bench.sweeps.request import points
from elmo_bench.system.storage.hashing import fingerprint

pytestmark = pytest.mark.slow


def test_the_points_of_every_sweep_keep_their_ids_and_their_changes():
    """Of the first task of each at mini, where all that a run reads is made here; two sweeps need what is installed."""
    found = {}
    for sweep in sorted({*pages.sweeps()} - {"sources", "vectors"}):
        page = pages.table(sweep)
        task = (page.tasks or ["ner"])[0]
        if page.scales and "mini" not in page.scales:
            continue
        for point in points(sweep, [f"task={task}", "scale=mini"], [1]):
            run = composing.run_config([f"task={task}", "scale=mini", *point])
            found[f"{sweep} {' '.join(point)}"] = [Identity(run).run, run.variant]
    assert fingerprint(found) == "8ced8b1ab2be3579"

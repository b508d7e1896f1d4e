"""A head goes to the hub with its card, and is loaded from there by its name."""

import json
import subprocess
import sys

import pytest

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.card import files_of
from elmo_bench.system import places, processes
from elmo_bench.text import hub as hubs
from elmo_bench.trained.prediction import load
from tests.conftest import PATIENCE, clean_environment
from tests.fakes import refuses
from tests.hub import hub

pytestmark = pytest.mark.slow

ROW = {"text": "Ida Berg sang in Oslo ."}
CODE = f"import elmo_bench, json; print(json.dumps(elmo_bench.load('user/ner').predict([{ROW}])))"


@pytest.fixture
def cloud(tmp_path):
    """The files of the hub, and what runs a command that knows no other."""
    with hub() as (files, address):
        own = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}

        def run(*command: str, **changes: str) -> subprocess.CompletedProcess[str]:
            environment = clean_environment() | own | changes
            return subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )

        yield files, run


def test_a_head_is_published_with_its_card_and_loaded_by_its_name(cloud):
    files, run = cloud
    publish = (*processes.python("elmo_bench", "publish"), "target=hub", "head=ner", "repo=user/ner")
    refused = run(*publish, HF_TOKEN="unknown")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: user/ner: the hub refuses (Invalid token)")
    assert files == {}
    done = run(*publish, HF_TOKEN="known")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith('/user/ner: elmo_bench.load("user/ner") opens it\n')
    shipped = places.BROUGHT / "models" / "heads" / "ner"
    assert {name: files[name] for name in ("head.ckpt", "card.json")} == {
        name: (shipped / name).read_bytes() for name in ("head.ckpt", "card.json")
    }
    assert files["README.md"].decode() == (shipped / "README.md").read_text().replace('load("ner")', 'load("user/ner")')
    fetched = run(sys.executable, "-c", CODE, PYTHONPATH=str(places.ROOT))
    assert fetched.returncode == 0, fetched.stderr
    assert json.loads(fetched.stdout) == load("ner").predict([ROW])


def test_a_bilm_is_opened_by_its_name_on_the_hub(cloud):
    files, run = cloud
    folder = places.BROUGHT / "models" / "mini"
    files |= {name: (folder / name).read_bytes() for name in ("options.json", "weights.hdf5", "card.json")}
    code = "import elmo_bench; print(elmo_bench.BiLM.open('user/ner').encode([['boat']])[0].sum().item())"
    fetched = run(sys.executable, "-c", code, PYTHONPATH=str(places.ROOT))
    assert fetched.returncode == 0, fetched.stderr
    (layers,) = BiLM.open(folder).encode([["boat"]])
    assert float(fetched.stdout) == pytest.approx(layers.sum().item())


def test_what_the_hub_does_not_have_or_cannot_be_asked_for_is_one_line(monkeypatch, refused):
    monkeypatch.setattr(hubs, "_reachable", lambda: False)
    for opened in (load, files_of):
        with refuses("nobody/nothing: there is no such folder here, and the hub gave no such"):
            opened("nobody/nothing")
    assert not hubs.is_model("elmo_bench/nosuch")  # a path beside this folder
    from elmo_bench.commands.compare import Publish

    assert "target=hub needs head=FOLDER" in refused(Publish, "target=hub")
    assert "cannot be reached, so nothing is published" in refused(Publish, "target=hub", "head=ner", "repo=u/n")

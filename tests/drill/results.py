"""What of the files of a scene is compared: results without the times of day, durations and process ids."""

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

from elmo_bench.bilm.lm import load_lm
from elmo_bench.commands.use import Embed
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.mini.data import ensure_data
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.reporting import report
from elmo_bench.trained import heads
from elmo_bench.trained.prediction import predict
from tests.drill import scene
from tests.fakes import jsonl
from tests.running.test_train import result

SENTENCES = [["ba", "de"], ["gi"], "ko lu ba far".split(), ["de", "de", "lu"]]


def contents(folder: Path, *but: str) -> dict[str, bytes]:
    """Every file below a folder, except those of these names."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def source(place: Path) -> BilmLayers:
    """The scene's biLM."""
    return BilmLayers(place / "bilm" / "options.json", place / "bilm" / "weights.hdf5")


def layers(place: Path) -> Any:
    """Of the scene's biLM, with what identifies it."""
    bilm = source(place)
    return bilm.sha256, bilm.settings, bilm.layers(SENTENCES).numpy().tobytes()


def of_shipped_bilms(place: Path) -> Any:
    """Their layers, softmaxes and vocabularies."""
    return [
        (BilmLayers(each / "options.json", each / "weights.hdf5").layers(SENTENCES).numpy().tobytes(), load_lm(each)[1])
        for each in (place / "mini", place / "open")
    ]


def of_shipped_heads(place: Path) -> Any:
    """What `predict task=...` reads of each head."""
    return [len(heads.read(folder.name, str(place))["state_dict"]) for folder in sorted((place / "heads").iterdir())]


def language_model(place: Path) -> Any:
    """The softmax and the vocabulary of the scene's biLM."""
    lm, words = load_lm(place / "bilm")
    return words, [parameter.detach().numpy().tobytes() for parameter in (lm.softmax.weight, lm.softmax_bias.weight)]


def card(place: Path) -> Any:
    """The scene's biLM as `pretrain` shows it, and its layers."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        scene.pretrained(place)
    return said.getvalue(), layers(place)


def exported(place: Path, every: float = 300.0) -> Any:
    """The files of the scene's biLM, trained if necessary; the card tells the time."""
    scene.pretrained(place, f"every={every}")
    return contents(place / "bilm", "card.json")


def cached(place: Path) -> Any:
    """Layers from the cache, filled if necessary: as its process reads them, and as the next one does."""
    first, second = (ActivationCache(source(place), place / "layers") for _ in range(2))
    first.prepare(SENTENCES)
    return [cache.layers(SENTENCES).numpy().tobytes() for cache in (first, second)]


def world(place: Path) -> Any:
    """A generated data set, made if necessary."""
    ensure_data(place / "world", sizes=scene.WORLD)
    return contents(place / "world")


def of_run(place: Path, *changes: str) -> Any:
    """A run's record and per-example results."""
    return compared(place, scene.run(place, *changes))


def of_vectors(place: Path) -> Any:
    """The record and per-example results of a run with vectors of the text."""
    return compared(place, scene.vectors(place))


def compared(place: Path, record: Record) -> Any:
    """What of a record and its per-example results does not depend on the time."""
    path = store.place(place / "results", record.scale, record.task, record.run)
    return result(store.read(path)), items.path_of(path).read_bytes()


def records(place: Path) -> Any:
    """All records and their per-example results."""
    return [compared(place, store.read(path)) for path in sorted((place / "results/runs").rglob("*.json"))]


def of_items(place: Path) -> Any:
    """The per-example results of the scene's run as they are read."""
    (path,) = (place / "results" / "runs").rglob("*.items.npz")
    return items.packed(items.read(path))


def reported(place: Path) -> Any:
    """The pages of the report, and the records as they are read."""
    scene.opened(place)
    report.refresh(place / "results", None)
    return store.read_all(place / "results"), pages(place)


def pages(place: Path) -> Any:
    """The pages of the report."""
    return {name: (place / "results" / name).read_bytes() for name in ("README.md", "report.html", "report.json")}


def predicted(place: Path) -> Any:
    """Predictions of the run's best epoch."""
    scene.opened(place)
    (checkpoint,) = (place / "results" / "work").rglob("best.ckpt")
    (place / "in.jsonl").write_text(jsonl({"tokens": tokens} for tokens in SENTENCES))
    predict(str(checkpoint), str(place / "in.jsonl"), str(place / "out.jsonl"), task="toy")
    return (place / "out.jsonl").read_bytes()


def embedded(place: Path) -> Any:
    """The output of `embed`."""
    files = f"options={place}/bilm/options.json", f"weights={place}/bilm/weights.hdf5"
    with scene.arguments(*files, f"input={place}/train.txt", f"output={place}/layers.hdf5", "group=10"):
        Embed.parse(sys.argv[1:]).run()
    return (place / "layers.hdf5").read_bytes()

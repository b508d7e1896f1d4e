"""Files of strangers: nothing in them runs, no word of them becomes a path, nothing counts twice.

Whatever a trial does, what a command neither makes nor removes must be as before, and what it reads above all.
"""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from elmo_bench.commands.bilm import vocabulary
from elmo_bench.commands.use import embed, predict
from elmo_bench.records import store
from elmo_bench.reporting.pages import publishing
from elmo_bench.sources.archives import unpack
from elmo_bench.system import children, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.json_text import CHECKSUM, sealed
from elmo_bench.system.wandb_runs import WandbRun
from elmo_bench.trained import heads
from tests.drill import results, scene, warm
from tests.drill.commands import COMMANDS
from tests.drill.documents import zipped
from tests.drill.flips import Kind
from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, Answer, Area, of_error
from tests.sources.test_data_command import tar_gz

SECRET = "DRILL_SECRET"  # a variable of the environment; its value has small letters
MADE = "made"  # what code in a file would make, and where its words would lead
WRITTEN = ("in.jsonl", "out.jsonl", "cache", "results")  # in a scene, by its commands


def word(place: Path, draw: random.Random) -> Any:
    """What a file may say in the place of any value."""
    call, up = {"_target_": "os.mknod", "path": str(place / "ran")}, draw.randint(1, 6) * "../"
    created = f"${{oc.create:{{_target_:os.mknod,path:{place}/ran}}}}"
    inner = {"_target_": "torch.nn.Sequential", "_args_": [call]}, {"_target_": "hydra.utils.call", "config": call}
    code = created, f"${{oc.env:{SECRET}}}", "${conf:a}", "${", "???", "os.abort", call, [call], *inner
    paths = (up + MADE, f"*/{up}{MADE}", up, str(place / MADE), ".", "*", "~", "", "\0", "\n", "x" * 5000)
    return draw.choice(draw.choice((code, paths, ("<script>", None, True, -1, 10**30, 0.5, [], {}, [[]], {"": ""}))))


def reworded(node: Any, place: Path, draw: random.Random) -> str:
    """Puts a word in the place of a value, anywhere in containers."""
    box, key = draw.choice(list(_values(node)))
    box[key] = word(place, draw)
    return f"{key}={str(box[key])[:80]!r}"


def _values(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _values(node[key])


# Checkpoints and records.


def of_checkpoint(path: Path, draw: random.Random) -> str:
    """Other words in its configuration or its vocabularies."""
    saved = torch.load(path, weights_only=True)
    parts = {key: saved[key] for key in ("hyper_parameters", "vocabularies", "bilm_sha256")}
    done = reworded(parts, CHECKPOINT.scene.place, draw)
    torch.save(saved | parts, path)
    return done


def of_weights(path: Path, draw: random.Random) -> str:
    """A weight that is no number."""
    saved = torch.load(path, weights_only=True)
    name, weight = draw.choice([each for each in saved["state_dict"].items() if each[1].is_floating_point()])
    weight.view(-1)[draw.randrange(weight.numel())] = draw.choice((math.nan, math.inf, -math.inf))
    torch.save(saved, path)
    return name


def of_record(path: Path, draw: random.Random) -> str:
    """Other words in it, and the checksum that goes with them."""
    plain = json.loads(path.read_text())
    del plain[CHECKSUM]
    done = reworded(plain, RECORD.scene.place, draw)
    path.write_text(sealed(json.dumps(plain, indent=1) + "\n"))
    return done


def copied(path: Path, draw: random.Random) -> str:
    """A record and its per-example results under another name or in another folder, as a backup makes them."""
    name = draw.choice((f"{path.stem} copy", path.stem.upper() + "_", f"{path.stem}(1)", f"{path.stem[1:]}0", "Ω"))
    folder = path.parent / draw.choice((".", "../other", "../../mini/toy"))
    folder.mkdir(parents=True, exist_ok=True)
    for ending in (".json", ".items.npz"):
        shutil.copy(path.with_suffix(ending), folder / f"{name}{ending}")
    return f"{folder}/{name}"


def _shown(place: Path) -> Any:
    """The pages of the report. The records are published, too, up to where W&B would be called."""
    publishing.has_key, publishing.opened = lambda: False, lambda *_, **__: WandbRun()
    publishing.wandb_record.conclude = lambda *_: None
    pages, root = results.reported(place)[1], place / "results"
    publishing.publish(store.read_all(root), root, root, "p", None)
    return pages


def _swept(folder: Path) -> None:
    scene.swept(folder)
    for name in (MADE, "results/wandb/offline-run-1-x"):  # what a path of words could lead to, and through
        (folder / name).mkdir(parents=True)
        (folder / name / "kept").touch()


CHECKPOINT = Kind(scene.trained, "results/work/*/*/*/best.ckpt", results.predicted)
RECORD = Kind(_swept, "results/runs/*/*/*.json", _shown)


def changed(kind: Kind, change: Callable[[Path, random.Random], str], any_result: bool, draw: random.Random) -> Answer:
    """Changes a file, reads it, and looks whether that has done anything else."""
    os.environ[SECRET] = SECRET.lower()
    outcome, told = kind.trial(draw, change, any_result)
    place, there = kind.scene.place, kind.scene.written()
    astray = [path for path in there if path.relative_to(place).parts[0] not in WRITTEN]
    astray += [path for path in kind.scene.files if not path.exists()]
    astray += [path for parent in place.parents for path in parent.glob(f"{MADE}*")]
    if astray or SECRET.lower() in told:
        return FAULT, f"{told}\nmade, changed or removed: {astray}, or the environment was read"
    return outcome, told


# Outputs.

READING = {
    embed.main: ("options=bilm/options.json", "weights=bilm/weights.hdf5", "input=train.txt"),
    vocabulary.main: ("text=train.txt",),
    predict.main: ("checkpoint=best.ckpt", "input=in.jsonl"),
}


def over_input(draw: random.Random) -> Answer:
    """An output that is an input, by itself or through a link."""
    CHECKPOINT.scene.restore()
    place, (main, arguments) = CHECKPOINT.scene.place, draw.choice(list(READING.items()))
    shutil.copy(next(place.glob(CHECKPOINT.pattern)), place / "best.ckpt")
    (place / "in.jsonl").write_text('{"tokens": ["ba"]}\n')
    read = place / draw.choice(arguments).partition("=")[2]
    (place / "link").symlink_to(read)
    (place / "hard").hardlink_to(read)
    given = [*arguments, f"output={draw.choice((read, place / 'link', place / 'hard'))}"]
    before = read.read_bytes()

    def run() -> None:
        os.chdir(scene.opened(place).folder)
        with scene.arguments(*given):
            main()

    outcome, told = warm.call(run)
    over = outcome == warm.VALUE or read.read_bytes() != before
    return FAULT if over else outcome, f"{told}\n{given}: {'written over' if over else told}"


def in_its_place(draw: random.Random) -> Answer:
    """Somebody makes the folder of the output while a biLM is trained."""
    command = COMMANDS["pretrain"]
    moment, mine = draw.uniform(0, 1.1) * command.undisturbed.seconds, command.scene.place / "bilm" / "mine"
    command.scene.restore()
    typed = command.type()
    time.sleep(moment)
    mine.parent.mkdir(exist_ok=True)
    mine.touch()
    done = typed.ended()
    if not mine.is_file() or (done.status and not done.refused):
        return done.fault(f"after {moment:.2f} s")
    return (ONE_LINE if done.status else RESULT), done.said


def open_cache(draw: random.Random) -> Answer:
    """A umask by which anybody may write."""
    stage = scene.of(scene.bilm)
    stage.restore()
    outcome, told = warm.call(lambda: (os.umask(draw.choice((0, 0o20, 0o2))), results.cached(stage.place))[1])
    free = [path.name for path in (stage.place / "layers").glob("*/[!l]*") if path.stat().st_mode & 0o002]
    return (RESULT, "") if outcome == warm.VALUE and not free else (FAULT, f"anybody may write to {free}; {told}")


# The current folder.


def _wheel(folder: Path) -> None:
    """A head in the current folder, which is damaged, and the one of that name which an installed package brings."""
    for models in ("models", "package/models"):
        shutil.copytree(places.ROOT / "models/heads/sst5", folder / models / "heads/sst5")


def _opened(place: Path) -> Any:
    places.ROOT, places.PACKAGE = place, place / "package"
    return str(heads.read("sst5")["state_dict"])


WHEEL = Kind(_wheel, "models/heads/sst5/*", _opened)


def modules(draw: random.Random) -> Answer:
    """A job that starts where modules with the names of others lie."""
    names = sorted({name.partition(".")[0] for name in sys.modules} - {"__main__"})
    with tempfile.TemporaryDirectory() as folder:
        for name in draw.sample(names, 20):
            Path(folder, f"{name}.py").write_text("open('ran', 'w')")
        done = subprocess.run(children.python("elmo_bench", "--version"), cwd=folder, capture_output=True, text=True)
        ran = done.returncode or Path(folder, "ran").exists()
        return FAULT if ran else EQUAL, f"{done.stderr}\nimported one of {os.listdir(folder)}" if ran else ""


MEMBERS: tuple[str, ...] = (
    "a.txt",
    "b/c",
    "../out",
    "b/../../out",
    "/out",
    "..\\out",
    "..",
    "C:out",
    "",
    "l/inside",
    "./l",
)


def archive(draw: random.Random) -> Answer:
    """Members that are links, or lie outside of the folder."""
    with tempfile.TemporaryDirectory() as name:
        path, folder = Path(name, draw.choice(("a.zip", "a.tar.gz"))), Path(name, "in", "folder")
        members: dict[str, bytes] = dict.fromkeys(draw.sample(MEMBERS, draw.randint(1, 4)), b"text")
        linked = draw.choice((None, "a.txt", "l", "../l"))
        path.write_bytes(zipped(members) if path.suffix == ".zip" else tar_gz(members, link=linked))
        try:
            unpack(path, folder, ["*"], 1000)
            answer = RESULT, str(members)
        except UserError as error:
            answer = of_error(error)
        made = [one for one in Path(name).rglob("*") if one != path and not one.is_dir()]
        astray = [one for one in made if one.is_symlink() or folder not in one.parents]
        return (FAULT, f"{members} {linked} made {astray}") if astray else answer


TRIALS: dict[str, tuple[Callable[[random.Random], Answer], int]] = {
    "checkpoint": (partial(changed, CHECKPOINT, of_checkpoint, True), 100),
    "weights": (partial(changed, CHECKPOINT, of_weights, False), 30),
    "record": (partial(changed, RECORD, of_record, True), 100),
    "copies": (partial(changed, RECORD, copied, False), 30),
    "over input": (over_input, 60),
    "in its place": (in_its_place, 10),
    "open cache": (open_cache, 10),
    "current folder": (WHEEL.trial, 10),
    "modules": (modules, 30),
    "archive": (archive, 5000),
}
AREAS = [Area(f"strangers:{name}", number, do, 300.0, warm.ready) for name, (do, number) in TRIALS.items()]

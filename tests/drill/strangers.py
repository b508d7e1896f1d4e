"""Files from strangers: nothing in them runs, and no word of them becomes a path.

Whatever a trial does, what a command neither makes nor removes must be as before, and what it reads above all.
"""

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from elmo_bench.configuration.schema import WandbConfig
from elmo_bench.records import publishing, store, wandb_runs
from elmo_bench.sources.fetch import unpack
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.json_text import CHECKSUM, sealed
from tests.drill import results, scene, warm
from tests.drill.commands import COMMANDS
from tests.drill.documents import zipped
from tests.drill.flips import Kind
from tests.drill.trial import FAULT, ONE_LINE, RESULT, Answer, Area, of_error
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


def of_record(path: Path, draw: random.Random) -> str:
    """Other words in it, and the checksum that goes with them."""
    plain = json.loads(path.read_text())
    del plain[CHECKSUM]
    done = reworded(plain, RECORD.scene.place, draw)
    path.write_text(sealed(json.dumps(plain, indent=1) + "\n"))
    return done


def _shown(place: Path) -> Any:
    """The pages of the report. The records are published, too, up to where W&B would be called."""
    publishing.has_key, wandb_runs.opened = lambda: False, lambda *_, **__: wandb_runs.WandbRun()
    pages, root = results.reported(place)[1], place / "results"
    publishing.publish(store.read_all(root), root, root, WandbConfig(project="p"))
    return pages


def _swept(folder: Path) -> None:
    scene.swept(folder)
    for name in (MADE, "results/wandb/offline-run-1-x"):  # what a path of words could lead to, and through
        (folder / name).mkdir(parents=True)
        (folder / name / "kept").touch()


CHECKPOINT = Kind(scene.trained, "results/work/*/*/*/best.ckpt", results.predicted)
RECORD = Kind(_swept, "results/runs/*/*/*.json", _shown)


def changed(kind: Kind, change: Callable[[Path, random.Random], str], draw: random.Random) -> Answer:
    """Changes a file, reads it, and looks whether that has done anything else."""
    os.environ[SECRET] = SECRET.lower()
    outcome, told = kind.trial(draw, change, any_result=True)
    place, there = kind.scene.place, kind.scene.written()
    astray = [path for path in there if path.relative_to(place).parts[0] not in WRITTEN]
    astray += [path for path in kind.scene.files if not path.exists()]
    astray += [path for parent in place.parents for path in parent.glob(f"{MADE}*")]
    if astray or SECRET.lower() in told:
        return FAULT, f"{told}\nmade, changed or removed: {astray}, or the environment was read"
    return outcome, told


# Outputs.


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
    "checkpoint": (partial(changed, CHECKPOINT, of_checkpoint), 100),
    "record": (partial(changed, RECORD, of_record), 100),
    "in its place": (in_its_place, 10),
    "archive": (archive, 5000),
}
AREAS = [Area(f"strangers:{name}", number, do, 300.0, warm.ready) for name, (do, number) in TRIALS.items()]

"""The arm of a run, baseline or +ELMo, and its variant: what was typed that its configuration files do not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.keys import Keys, fields, valid
from elmo_bench.configuration.schema import BilmConfig, RunConfig, TunedConfig, VectorsConfig
from elmo_bench.identity.settings import changing, flat, relative
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

# Where files lie; their content tells runs apart, by its digests in the settings.
PLACES = {*composing.FILES, *composing.DATA, "bilm._target_", "bilm.name", "seed"}
FILE = "task.words.path"


def variant(run: RunConfig) -> dict[str, Any]:
    """What a run changes of its task's configuration at its scale and arm: dotted keys and values, as they are typed.

    Other word vectors, another source of layers and files of callbacks are one key each, `vectors`, `bilm` and
    `callbacks`, whatever their files set; what was typed beside the choice has its own keys.
    """
    found = changed(run)
    chosen = {key.partition("=")[0] for key in run.typed}
    if "vectors" in chosen or FILE in found:
        default = composing.page([f"task={run.task.name}", f"scale={run.scale.name}"], run.arm)
        own = valid(VectorsConfig, OmegaConf.to_container(default.vectors, resolve=True))
        label, scales = vectors_of(run), _label(own, _value(default, "task.words"))
        if (label, run.vectors.source == "random") != (scales, own.source == "random"):
            if run.task.words is None:
                raise UserError(f"vectors={label}: the model of task={run.task.name} has no word vectors")
            if FILE in found:  # of which no page says more
                found = {k: v for k, v in found.items() if k != "task.words.size" and not k.startswith("vectors.")}
            found["vectors"] = label
    if "callbacks" in chosen:
        named = sorted(name for name in changing(run) if places.page("callbacks", name).is_file())
        found |= {"callbacks": named[0] if len(named) == 1 else named} if named else {}
    if not run.baseline and source_of(run) != run.scale.bilm:
        found["bilm"] = "tuned" if isinstance(run.bilm, TunedConfig) else run.bilm.name
    return {key: found[key] for key in sorted(found) if key not in PLACES}


def changed(run: RunConfig) -> dict[str, Any]:
    """The keys that were typed and may change a result, with values other than those of the files, places included."""
    page = composing.page(run.typed, run.arm)
    keys = [key for key in typed_keys(run.typed) if matters(run, key)]
    values = {key: (_value(run, key), _value(page, key)) for key in keys}
    return {key: relative(ours) for key, (ours, theirs) in values.items() if relative(ours) != relative(theirs)}


def typed_keys(overrides: Iterable[str]) -> list[str]:
    """The dotted keys of values among overrides: `elmo.layers` of "elmo={layers:last}"."""
    parsed = [each for each in map(composing.parse, overrides) if composing.is_value(each)]
    return [key for each in parsed for key, value in flat({each.key_or_group: each.value()}).items() if value != {}]


def matters(run: RunConfig, key: str) -> bool:
    """Whether a result of the run may depend on a key: not on those of blocks that it does not use."""
    first, _, rest = key.partition(".")
    words = run.vectors.source
    if (first in ("elmo", "bilm") and run.baseline) or (first == "vectors" and not (run.trains_vectors or run.sets)):
        return False
    if (key == "task.words.size" and run.sets) or (key == "task.words.trainable" and words == "random"):
        return False  # the vectors say it
    if first == "callbacks":
        return rest.partition(".")[0] in changing(run)
    block: Any = run
    for part in key.split("."):
        if isinstance(block, Keys):
            field = fields(type(block)).get(part)
            if field is None or (field.exclude and not field.json_schema_extra):
                return False
        block = _value(block, part)
    return True


def _value(node: Any, key: str) -> Any:
    """The value of a dotted key; None if there is none."""
    if OmegaConf.is_config(node):
        found = OmegaConf.select(node, key)
        return OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found
    for part in key.split("."):
        node = node.plain() if isinstance(node, Keys) else node
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def own_files(config: Mapping[str, Any]) -> dict[str, str]:
    """By split, the name of a file of the user's where the scale has its own; of a run's configuration without places.

    What a scale generates is known by its place, other files by their names.
    """
    task, scale = config["task"], config["scale"]
    of_task, theirs, found = task.get("name"), dict[str, Any](), dict[str, str]()
    for page in (places.page("task", of_task), places.page(f"task/{of_task}", scale.get("name"))):
        said: Any = OmegaConf.to_container(pages.read(page)) if page.is_file() else {}
        theirs |= (said.get("task") or {}).get("data") or {}
    for split in ("train", "dev", "test"):
        ours = (task.get("data") or {}).get(split)
        if isinstance(ours, str) and isinstance(theirs.get(split), str):
            name, scales = PurePath(ours).name, theirs[split].removeprefix("${in_folder:").removesuffix("}")
            if scale.get("maker"):
                own = ours != scales.replace("${scale.folder}", str(scale.get("folder")))
            else:
                own = name != PurePath(scales).name
            found |= {split: name} if own else {}
    return found


def source_of(run: RunConfig) -> str:
    """The file of the run's source of layers in conf/bilm/."""
    if isinstance(run.bilm, TunedConfig):
        return "tuned"
    if places.page("bilm", run.bilm.name).is_file():
        return run.bilm.name
    return "custom" if isinstance(run.bilm, BilmConfig) else "transformers"


def vectors_of(run: RunConfig) -> str:
    """The name of its word vectors: of the choice, or of the file `task.words.path`; "random" if there are none."""
    return _label(run.vectors, run.task.words)


def _label(vectors: VectorsConfig, words: Mapping[str, Any] | None) -> str:
    if vectors.source != "page":
        return vectors.label
    path = (words or {}).get("path")
    return "random" if path is None else Path(path).name

"""All keys of a run and of a pretraining, from the typed configuration, the tasks' own arguments and their files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hydra.utils import get_object
from omegaconf import OmegaConf
from pydantic.fields import FieldInfo

from elmo_bench.commands.command import blocks, shown
from elmo_bench.configuration import composing, pages, schema
from elmo_bench.configuration.keys import LARGEST, allowed, documented, fields, parts
from elmo_bench.reporting.section import pipes
from elmo_bench.running.blocks import GIVEN

OWN = ("reader", "words", "chars", "head", "metric", "optimizer", "average")  # blocks that name code chosen by the task
REPEATING = [cls for cls in schema.SOURCES.values() if cls is not schema.BilmConfig]
REPEATED = {*fields(schema.BilmConfig)}
BETWEEN = {"ge": "at least {}", "gt": "above {}", "lt": "below {}", "le": "at most {}"}


def table() -> str:
    """The keys of every block, with default, bounds and meaning."""
    listed = [("the run itself", "", schema.RunConfig), *((f"`{name}`", name, cls) for name, cls in blocks().items())]
    listed += [(f"`bilm` of the kind {kind}", "bilm", cls) for kind, cls in schema.SOURCES.items() if cls in REPEATING]
    return "\n\n".join(f"### Keys of {title}\n\n{block(name, cls)}" for title, name, cls in listed)


def block(name: str, cls: type) -> str:
    """The keys of one block."""
    repeated = REPEATED if cls in REPEATING else ()
    rows = []
    for key, field, meaning in documented(cls, f"{name}." if name else "", nested=bool(name)):
        if ".source." in key or key.removeprefix("bilm.") in repeated:
            continue  # in a table of its own
        default = "its file's" if field.is_required() else f"`{_text(field.default)}`"
        values = [shown(value) for value in allowed(field.annotation)]
        listed = [f"one of {', '.join(values)}"] if {*values} - {"true", "false"} else []
        rows.append((f"`{key}`", default, "; ".join([meaning, *listed, *bounds(field)])))
    return _table(("key", "default", "meaning"), rows)


def bounds(field: FieldInfo) -> list[str]:
    """The bounds of a number, in words."""
    marks = [*field.metadata, *(mark for part in parts(field.annotation) for mark in getattr(part, "__metadata__", ()))]
    marks += [mark for each in marks for mark in getattr(each, "metadata", ())]
    limits = [(words, getattr(mark, kind, None)) for kind, words in BETWEEN.items() for mark in marks]
    return [words.format(limit) for words, limit in limits if limit not in (None, LARGEST)]


def of_task(task: str) -> str:
    """The arguments of the code that a task's file names, with their values at each scale."""
    composed = {scale: composing.compose([f"task={task}", f"scale={scale}"]).task for scale in pages.scales(task)}
    at: dict[str, Any] = {scale: OmegaConf.to_container(page, resolve=False) for scale, page in composed.items()}
    first = next(iter(at.values()))
    rows = [row for block in OWN if (first.get(block) or {}).get("_target_") for row in _arguments(block, at)]
    return _table(("key", "value", "meaning"), rows)


def _arguments(block: str, at: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str, str]]:
    first = next(iter(at.values()))[block]
    code = get_object(first["_target_"])
    given = GIVEN[block]
    signature = inspect.signature(code)
    names = [n for n, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    known = meanings(code)
    for name in names[given.positional :]:
        if name in given.named + given.optional:
            continue
        if name == "data" and block == "reader":
            yield "`task.data`", "", known["data"]
            continue
        written = any(name in (page[block] or {}) for page in at.values())
        if block == "optimizer" and not written:
            continue  # of torch, and described there
        texts = {scale: _value(page[block] or {}, name) for scale, page in at.items()}
        listed = (
            {*texts.values()} if len({*texts.values()}) == 1 else (f"{scale}: {text}" for scale, text in texts.items())
        )
        yield f"`{'' if written else '+'}task.{block}.{name}`", ", ".join(listed), known.get(name, "")


def _value(block: Mapping[str, Any], name: str) -> str:
    """The value of an argument, or its default; "–" if the block is empty or names code without this argument."""
    there = inspect.signature(get_object(block["_target_"])).parameters if block else {}
    return f"`{_text(block.get(name, there[name].default))}`" if name in there else "–"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, str):  # what the pages interpolate
        value = re.sub(r"\$\{arm:(.+),(.+)\}", r"baseline \1, elmo \2", value)
        value = re.sub(r"\$\{([\w.]+)\}", r"as \1", value)
    return "required" if value is inspect.Parameter.empty else shown(value)


def meanings(code: Any) -> dict[str, str]:
    """The meaning of each argument, from the sections "Args" and "Attributes" of a docstring."""
    found: dict[str, str] = {}
    for cls in inspect.getmro(code) if inspect.isclass(code) else (code,):
        text = inspect.getdoc(cls) or ""
        for part in re.findall(r"^(?:Args|Attributes):\n((?:    .*\n?|\n)+)", text, re.MULTILINE):
            for entry in re.split(r"\n(?=    \S)", part.rstrip()):
                names, _, meaning = entry.strip().partition(":")
                for name in names.split(","):
                    found.setdefault(name.strip(), " ".join(meaning.split()))
    return found


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table in which `<` begins no tag."""
    return pipes(header, [tuple(cell.replace("<", "\\<") if "`" not in cell else cell for cell in row) for row in rows])

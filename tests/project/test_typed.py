"""Every command line of every page is typed, on small data and shortened as a user could.

A line that a page shows is split as a shell would. `PLACEHOLDERS` says what stands for words that a reader replaces,
`SHORTER` what is typed behind a command that would take long, and `ELSEWHERE` which lines are not typed here, and why.
Of a run all is done but training: it is composed, checked, and its identity is made of its files; one that is not typed
is composed alone.
"""

import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from elmo_bench.commands.command import command
from elmo_bench.configuration.composing import compose
from elmo_bench.configuration.keys import valid
from elmo_bench.mini import data as mini
from elmo_bench.mini.build import Builder
from elmo_bench.records import settings
from elmo_bench.running import run as running
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from tests import tiny_bilm
from tests.fakes import put, table
from tests.project.test_documents import DOCUMENTS, ROOT
from tests.project.test_layout import installed

pytestmark = pytest.mark.slow
HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None

# A pattern in a line, and what is typed in its place; {task} is the task of the line, else that of the page. All tasks
# are typed with `reproduce` and without make. Further seeds are further points, which differ in nothing else; of the
# points of a sweep one is typed.
PLACEHOLDERS = dict(
    table(r"""
    bilm\.path=FOLDER                | bilm.path=model
    /folder/of/the/model             | model
    vectors_root=FOLDER              | vectors_root=vectors
    \bFOLDER(/data)?\b               | data
    data_root=\.                     | data_root=data
    /path/to/[\w./-]+                | given/{task}
    task\.data\.train=train\.id \.\.\. | task.data.train=train.id task.data.dev=dev.id task.data.test=test.id
    task\.data\.(train|dev|test)=(my|train|dev|test)\.(?!id)[\w.]+ | task.data.\1=data/files/{task}.\1
    (task\.data\.train=\S+) \.\.\.   | \1 task.data.dev=data/files/{task}.dev task.data.test=data/files/{task}.test
    checkpoint=(CKPT|results\S+)     | task={task}
    gold=\S+ predictions=\S+         | gold=data/files/{task}.test predictions=data/answers/{task}
    input=(IN|in)\.jsonl             | input=in/{task}.jsonl
    input=test\.iob2                 | input=data/files/{task}.test
    input=dev-v1\.1\.json            | input=data/squad/dev-v1.1.json
    trainer=gpu                      | trainer=cpu
    device=cuda                      | device=cpu
    ^(make .*)\bTASK=all\b           | \1TASK=ner
    trainer\.devices=4               | trainer.devices=2
    (sweep=.*)task=all               | \1task=ner
    \bfraction=0\.1,1                | fraction=0.1
    \bseed=1,2,3                     | seed=1
    \bseeds=3                        | seeds=1
    \bexperiment=mine                | experiment=example
    \btrain \+sweep=table2           | train seed=1 elmo={layers:last} +sweep=table2
""")
)
# By command: what is typed behind it.
SHORTER = {
    "reproduce": ["run=false"],
    "sweep": ["run=false"],
    "pretrain": ["--cfg", "job"],
    "tune": ["--help"],
    "queue": ["--help"],  # it asks Slurm
    "analysis.pos": ["sentences=4"],
}
# A pattern in a line that is not typed: what has to be there, or what types it.
ELSEWHERE = dict(
    table(r"""
    ^make( +(setup|lint|format|wheels|pages|docs)\b.*| *(#.*)?)$ | sets up this checkout or writes into it
    ^(REAL=\S+ |PREEMPTIONS=\S+ )?make (test|test-slurm|drill)\b | a test itself
    ^make data|elmo-bench data              | a network; tests/sources/test_data_command.py
    \b(pip|srun|wandb|hf) |ON=slurm|launcher=|sweeper= | a network, a cluster or processes; tests/sweeps
    (make|elmo_bench|elmo-bench) (gpu|bench)|-m tests.gpu | minutes; tests/gpu and tests/speed
    ^(git|nvidia-\S+) |^\.venv/bin/pre-commit | other programs
    chunking|<name>                         | a task or a sweep of the reader's own; tests/benchmarks/test_new_task.py
    scale=paper\s*(#|$)|vectors_root=FOLDER {2,}task\.data | the hub
    elmo-bench (export|export_head|publish)\b | records of runs; tests/commands, reporting, trained
    elmo-bench demo\b                       | a page that stays open; tests/commands/test_demo.py
    elmo-bench -sc|^(export|\.|eval)\s      | the shell
""")
)


class Line(NamedTuple):
    """A command line of a page, and the task that the page is about."""

    text: str
    task: str


def lines(page: Path) -> list[Line]:
    """The lines of the blocks of shell of a page."""
    text = page.read_text()
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    joined = [line.strip() for block in blocks for line in re.sub(r" *\\\n *", "  ", block).splitlines()]
    own = page.parent.name if page.parent.parent.name == "tasks" else "ner"
    tasks = [found[1] if (found := re.search(r"(?:task|TASK)=(\w+)", line)) else own for line in joined]
    return [Line(line, task) for line, task in zip(joined, tasks, strict=True) if line]


def filled(line: Line) -> str:
    """The line with something in the places of its placeholders."""
    text = line.text
    for pattern, value in PLACEHOLDERS.items():
        text = re.sub(pattern, value.replace("{task}", line.task), text)
    return text


def composed(line: str) -> str:
    """What is wrong with the keys of a run that is not typed; of several values, the first counts."""
    typed = re.split(r"(?:-m elmo_bench |elmo-bench )(?:train|reproduce|sweep|prepare)\b", line)[1:]
    if not typed or re.search("chunking|<name>", line) or not all(map(installed, line.split())):
        return ""
    given = [word.split(",")[0] for word in shlex.split(typed[0], comments=True) if "=" in word and word != "task=all"]
    try:
        compose([key for key in given if key.partition("=")[0] not in ("seeds", "jobs", "run", "recorded")])
    except Exception as error:
        return f"{line}: {error}"
    return ""


def words(text: str, folder: Path) -> list[str]:
    """The words after `elmo-bench`; of `make`, those of the command that it would run."""
    typed = shlex.split(text, comments=True)
    if typed[0] == "make":
        told = subprocess.run(["make", "-n", *typed[1:]], cwd=folder, capture_output=True, text=True, check=True)
        (text,) = re.findall(r"-m elmo_bench (.*)", told.stdout)
        root = [word.replace("DATA_ROOT", "data_root") for word in typed if word.startswith("DATA_ROOT=")]
        return [*shlex.split(text), *root]
    typed = typed[2:] if typed[:2] == ["python", "-m"] else typed
    assert typed[0] in ("elmo-bench", "elmo_bench"), typed
    return typed[1:]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with `conf`, small data in the layout of scale=open, and what stands for the placeholders."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("typed")
        fill(folder)
        (folder / "results").mkdir()
        shutil.copytree(places.CONF, folder / "conf")
        for name, old, few in (("squad", "held_out: 1500", "held_out: 2"), ("squad/open", "15000", "4")):
            page = folder / f"conf/task/{name}.yaml"
            page.write_text(re.sub(rf"\b{old}\b", few, page.read_text()))
        patch.setattr(places, "CONF", folder / "conf")
        patch.delenv("WANDB_API_KEY", raising=False)
        for name, value in {
            "DATA_ROOT": "data", "VECTORS_ROOT": "vectors", "ELMO_BENCH_CACHE": str(folder / "cache"),
            "HYDRA_FULL_ERROR": "0", "WANDB_MODE": "offline",
        }.items():  # fmt: skip
            patch.setenv(name, value)
        kernels = places.machine_cache()
        patch.setattr(places, "machine_cache", lambda: kernels)
        patch.setattr(places, "ROOT", folder)
        patch.setattr(places, "OWN", folder / "results/own")
        patch.setattr(running, "run_once", reached)
        patch.chdir(folder)
        yield folder


MAKE = settings.make


class Reached(UserError):
    """A run would train now."""

    status = 0


def reached(*_):
    raise Reached("composed and checked")


SIZES = json.loads("""
{"lm": [600, 200, 200], "ner": [12, 8, 8], "srl": [12, 8, 8], "coref": [4, 2, 2], "snli": [12, 9, 9],
 "squad": [4, 2, 2], "sst": [12, 10, 10], "names": 200, "invented": 2}
""")
# Dev and test, and train, of scale=open.
OPEN = {
    "ner": ("ner_uner_resplit/resplit-{}.iob2",) * 2,
    "srl": ("srl_ewt/{}.conll", "srl_ewt/{}.conll.xz"),
    "coref": ("coref_litbank/{}.conll", "coref_litbank/{}.conll.xz"),
    "snli": ("snli/{}.tsv",) * 2,
    "squad": ("squad/{}-v1.1.json.xz",) * 2,
    "sst5": ("sst/{}.txt",) * 2,
}
# Of scale=paper, below the folder that a page names.
CONLL = {"train": "train", "dev": "development", "test": "test"}
ENG = {"train": "train", "dev": "testa", "test": "testb"}
ONTONOTES = ("{conll}/data/english/bc/a.gold_conll", "{split}.id")
GIVEN = {
    "ner": ("eng.{eng}",), "srl": ONTONOTES, "coref": ONTONOTES, "snli": ("snli_1.0_{split}.jsonl",),
    "sst5": ("{split}.txt",),
}  # fmt: skip
TEXTS = {
    "ner": '{"text": "Ida sang in Oslo."}', "srl": '{"text": "Ida sang.", "predicates": [1]}',
    "coref": '{"text": "Ida sang. She left."}',
    "snli": '{"premise": "Ida sang.", "hypothesis": "She sang."}', "sst5": '{"text": "A fine film."}',
    "squad": '{"question": "Who sang?", "context": "Ida sang in Oslo."}',
}  # fmt: skip


TAGGED = "1\tIda\tIda\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\tsang\tsing\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"
KEY = "bank%1:17:01::"
SENSES = f"# doc = a/{{}}\nthe\tDT\t-\t-\t-\nbank\tNN\tbank\t{KEY}\t1\n\n"
# Below vectors_root, by their sizes.
VECTORS = {"glove.6B.50d.txt": 50, "glove.6B.100d.txt": 100, "glove.840B.300d.txt": 300, "turian.50d.txt": 50}


def fill(folder: Path) -> None:
    """Writes the files."""

    def write(name: str, text: str) -> None:
        put(folder, {name: text})

    files = dict(Builder(1, valid(mini.Sizes, SIZES)).files())
    of = {task: {s: _only(files, task.rstrip("5"), s) for s in ("train", "dev", "test")} for task in OPEN}
    for task, each in OPEN.items():
        for split, text in of[task].items():
            write(f"data/{each[split == 'train'].format(split)}", text)
            write(f"data/files/{task}.{split}", text)
            for place in GIVEN.get(task, ()):
                given = place.format(split=split, conll=CONLL[split], eng=ENG[split])
                write(f"given/{task}/{given}", text)
        write(f"in/{task}.jsonl", TEXTS[task] + "\n")
        write(f"data/answers/{task}", of[task]["test"])
    labels = [line.partition("\t")[0] for line in of["snli"]["test"].splitlines()[1:]]
    trees = [re.match(r"\((\d)", line) for line in of["sst5"]["test"].splitlines()]
    write("data/answers/snli", "\n".join(labels) + "\n")
    write("data/answers/sst5", "\n".join(tree[1] for tree in trees if tree) + "\n")
    write("data/files/sst5.test", "\n".join(tree[1] for tree in trees if tree) + "\n")
    questions = re.findall(r'"id": "([^"]+)"', of["squad"]["test"])
    write("data/squad/dev-v1.1.json", of["squad"]["test"])
    write("data/answers/squad", json.dumps(dict.fromkeys(questions, "Ida")))
    for text in yaml.safe_load((ROOT / "conf/pretrain/open.yaml").read_text())["recipe"]["text"]:
        write(f"data/{text[0]}", files["lm/dev.txt"])
    for split in ("train", "dev", "test"):
        write(f"data/ud_ewt/en_ewt-ud-{split}.conllu{'.xz' * (split == 'train')}", TAGGED * 12)
        write(f"data/wsd_semcor/{split}.tsv{'.xz' * (split == 'train')}", SENSES.format(split) * 6)
    for name in ("text.txt", "corpus.txt.gz"):
        write(name, files["lm/dev.txt"])
    write("index.sense", f"{KEY} 08420278 1 20\n")
    known = sorted({word for text in files.values() for word in re.findall(r"[a-z]+", text)} | {"the", "sang"})
    for name, size in {**VECTORS, "../vectors.txt": 300}.items():
        write(f"vectors/{name}", "".join(f"{word}{' 0.5' * size}\n" for word in known))
    write("vectors/senna/hash/words.lst", "\n".join(known) + "\n")
    write("vectors/senna/embeddings/embeddings.txt", (" ".join(["0.5"] * 50) + "\n") * len(known))
    tiny_bilm.exported(folder)
    for model in (ROOT / "models").iterdir():
        (folder / "models").mkdir(exist_ok=True)
        (folder / "models" / model.name).symlink_to(model)
    for name in ("original/elmo_2x4096_512_2048cnn_2xhighway", "small/elmo_2x1024_128_2048cnn_1xhighway"):
        for part in ("options.json", "weights.hdf5"):
            target = folder / f"models/{name}_{part}"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / part, target)
    if HAS_TRANSFORMERS:
        tiny_bilm.write_bert(folder / "model")


def _only(files: dict[str, str], folder: str, split: str) -> str:
    (text,) = (text for name, text in files.items() if re.match(rf"{folder}/{split}\b", name))
    return text


def test_the_commands_of_pages_are_found():
    assert sum(len(lines(page)) for page in DOCUMENTS) > 100


EXECUTED = ROOT / "docs" / "tutorial.md"  # whole, by tests/project/test_generated.py


@pytest.mark.parametrize(
    "page", [page for page in DOCUMENTS if page != EXECUTED], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_command_of_a_page_ends_well(page, world, call, monkeypatch):
    wrong = []
    for line in lines(page):
        if any(re.search(pattern, line.text) for pattern in ELSEWHERE):
            wrong += filter(None, [composed(line.text)])
            continue
        text = filled(line)
        if text.startswith(("printf ", "echo ")):
            subprocess.run(text, shell=True, cwd=world, check=True)
            continue
        try:
            typed = words(text, ROOT)
        except Exception as error:
            wrong.append(f"{line.text}: {error!r}")
            continue
        name, *rest = typed if not typed[0].startswith("-") else ("train", "--help")
        monkeypatch.setattr(settings, "make", (lambda run: None) if name == "train" else MAKE)
        status, _, said = call(command(name), *rest, *SHORTER.get(name, []))
        if status:
            wrong.append(f"{line.text}\n    typed: {shlex.join(typed)}\n    {said[-700:]}")
    assert not wrong, "\n" + "\n".join(wrong)

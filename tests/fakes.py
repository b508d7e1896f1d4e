"""Small stand-ins for the parts around the one that a test is about, and what many tests check."""

import gzip
import hashlib
import io
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.layers.source import Sentences
from elmo_bench.nn.packing import padded
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.task import Embedded


class Table(nn.Module):
    """What of a `FakeBiLM` can be trained."""

    def __init__(self, vectors: Tensor):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(vectors, freeze=True)


def masks(*lengths: int, extra: int = 0) -> Tensor:
    """(B, T) bool of sentences, with `extra` columns of padding."""
    return torch.arange(max(lengths) + extra) < torch.tensor(lengths).unsqueeze(1)


def embedded(*lengths: int, size: int = 6, elmo: int = 0, extra: int = 0) -> Embedded:
    """Random vectors of sentences, with `extra` columns of padding; what stands at padding is noise."""
    mask = masks(*lengths, extra=extra)
    return Embedded(torch.randn(*mask.shape, size), torch.randn(*mask.shape, elmo) if elmo else None, mask)


def with_gradients(output: Tensor, inputs: Iterable[Tensor], **how: Any) -> list[Tensor]:
    """An output, and the gradients of the sum of its numbers, each with another weight."""
    weights = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return [output.detach(), *torch.autograd.grad((output * weights).sum(), list(inputs), **how)]


class FakeBiLM:
    """A source of layers: vectors of hashed words, a neighbour's word mixed in above layer 0.

    Args:
        options: read by no one.
        weights: a file that holds the seed.
        state: read by no one.
        seed: of the vectors, where there is no file.
    """

    n_layers, width = 3, 8
    cacheable, doubled_first_layer = True, False

    def __init__(self, options: str = "", weights: str | None = None, state: str = "warm", seed: int = 0):
        content = str(seed).encode() if weights is None else Path(weights).read_bytes()
        vectors = torch.randn(64, self.width, generator=torch.Generator().manual_seed(int(content)))
        self.module = Table(vectors)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.settings = {"source": "fake", "state": state}
        self.passes = 0

    @property
    def table(self) -> Tensor:
        """The vectors, (64, W)."""
        return self.module.table.weight

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, 3, T, 8), zero-padded."""
        self.passes += 1
        rows = [torch.empty(self.n_layers, 0, self.width, device=self.table.device), *map(self._row, sentences)]
        return padded(torch.cat(rows, dim=1), [len(sentence) for sentence in sentences])

    @torch.no_grad()
    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """One sentence after another."""
        for i, sentence in enumerate(sentences):
            yield [i], self._row(sentence)

    def _row(self, sentence) -> Tensor:
        """(3, T, 8) of one sentence."""
        ids = torch.tensor([sum(word.encode()) % 64 for word in sentence], dtype=torch.long, device=self.table.device)
        h = nn.functional.embedding(ids, self.table)  # (T, W)
        return torch.stack([h, h + h.roll(1, 0), h - h.roll(-1, 0)])


def put(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files by their paths below a folder; text is packed where the name says so."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(content if isinstance(content, bytes) else pack(content.encode()))
    return folder


SPLITS = ("train", "dev", "test")


def all_splits(path: Path) -> dict[str, str]:
    """What `task.data` says where one file is train, dev and test."""
    return dict.fromkeys(SPLITS, str(path))


def splits_in(folder: Path, texts: Iterable[str], ending: str = "") -> dict[str, Any]:
    """Writes the texts of train, dev and test into a folder; returns what `task.data` says of them."""
    names = {split: f"{split}{ending}" for split in SPLITS}
    return {"folder": str(put(folder, dict(zip(names.values(), texts, strict=True)))), **names}


def answer(command: Any, *arguments: object) -> tuple[int, str, str]:
    """Calls a command in this process; returns exit status, stdout, stderr."""
    out, err, threads, status = io.StringIO(), io.StringIO(), torch.get_num_threads(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.argv", [command.__name__, *map(str, arguments)])
        patch.setenv("HYDRA_FULL_ERROR", "0")
        patch.setenv(places.FOLDER, "")  # so that what `-cd` sets is taken back
        try:
            command.main()
        except SystemExit as end:
            status = int(end.code or 0)
    torch.set_num_threads(threads)
    return status, out.getvalue(), err.getvalue()


def one_line(found: tuple[int, str, str], *words: str) -> None:
    """Exit status 2 and one line with these words in it."""
    status, _, said = found
    errors = [line for line in said.splitlines() if line.startswith("error:")]
    assert (status, len(errors), "Traceback" in said) == (2, 1, False), said
    assert all(word in errors[0] for word in words), errors[0]


def content(folder: Path) -> dict[str, bytes]:
    """What a biLM is, without its card: that tells the time."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "card.json"}


def pages_of(results: Path) -> str:
    """The Markdown pages of a report, one after another."""
    return "\n".join(path.read_text() for path in sorted(results.rglob("*.md")))


def jsonl(rows: Iterable[Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def refuses(*told: str) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """What is done must end in a `UserError` whose line has all these texts or patterns in it."""
    with pytest.raises(UserError) as caught:
        yield caught
    said = str(caught.value)
    assert all(each in said or re.search(each, said) for each in told), said
    assert "\n" not in said or caught.value.faults


def at(path: object, line: int | None) -> str:
    """How a line says what file and which of its lines it is about."""
    return f"{path}: " if line is None else f"{path}:{line}: "


def for_each(name: str, values: str) -> pytest.MarkDecorator:
    """`parametrize` by the words of a text. A word that is JSON is its value."""
    return pytest.mark.parametrize(name, [_value(word) for word in values.split()])


def cases(text: str) -> pytest.MarkDecorator:
    """`parametrize` by a table, whose first line names the arguments."""
    names, *rows = table(text)
    return pytest.mark.parametrize(names, rows)


def table(text: str) -> list[list[Any]]:
    """Rows of cells: a line a row, cells between bars. A cell that is JSON is its value, and any other is text.

    A line that ends with a backslash goes on in the next one.
    """
    lines = re.sub(r"\\\n *", "", text).strip().splitlines()
    return [[_value(cell) for cell in re.split(r" +\|(?: +|$)", line.strip())] for line in lines]


def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell

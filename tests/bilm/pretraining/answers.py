"""What a command of pretraining or tuning answers in this process, and writes."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch

from elmo_bench.commands.command import Command


def run(command: type[Command], arguments: Sequence[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", list(arguments))
        command.main()


def answer(command: type[Command], arguments: Sequence[str]) -> tuple[int, str]:
    """Its exit status and all that it says."""
    said, before = io.StringIO(), torch.get_num_threads()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            run(command, arguments)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    torch.set_num_threads(before)
    return code, said.getvalue()


def content(folder: Path) -> dict[str, bytes]:
    """What a biLM is, without its card: that tells the time."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "card.json"}


def one_line(answer: tuple[int, str], *words: str) -> None:
    """Exit status 2 and one line with these words in it."""
    code, said = answer
    errors = [line for line in said.splitlines() if line.startswith("error:")]
    assert (code, len(errors)) == (2, 1), said
    assert "Traceback" not in said
    assert all(word in errors[0] for word in words), errors[0]

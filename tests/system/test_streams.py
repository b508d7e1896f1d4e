"""Standard streams that are closed, or that cannot show every character."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench import __main__
from elmo_bench.system import places
from elmo_bench.system.terminal import console
from tests.command import Fork
from tests.conftest import clean_environment
from tests.fakes import cases, for_each

pytestmark = pytest.mark.slow
RECORDS = "runs/mini/sst5"


def typed(*arguments: str, encoding: str | None = "utf-8") -> tuple[int, str, str]:
    """A command in a fork, with stdout in an encoding, or closed (None): exit status, stdout and stderr."""

    def act() -> None:
        sys.stdout = None if encoding is None else open(1, "w", encoding=encoding, closefd=False)  # type: ignore[assignment]  # noqa: SIM115
        if encoding is None:
            os.close(1)
        sys.argv = ["elmo-bench", *arguments]
        __main__.main()

    status, out, err = Fork(act, clean_environment()).finish()
    return status, out.encode("utf-8", "surrogateescape").decode(encoding or "utf-8"), err


@pytest.fixture
def recorded(tmp_path) -> Path:
    """Results with a few records of the project."""
    records = sorted((places.RECORDED / RECORDS).glob("*.json"))[:2]
    (tmp_path / RECORDS).mkdir(parents=True)
    for path in records:
        shutil.copy(path, tmp_path / RECORDS)
        shutil.copy(path.with_suffix(".items.npz"), tmp_path / RECORDS)
    return tmp_path


@for_each("encoding", "ascii null")
def test_the_report_is_written_whatever_stdout_is(recorded, encoding):
    status, out, err = typed("report", f"results_root={recorded}", encoding=encoding)
    assert "Traceback" not in err
    assert json.loads((recorded / "report.json").read_text())
    assert "±" in (recorded / "README.md").read_text()
    if encoding is None:
        assert (status, err.count("\n")) == (2, 1)
        assert err.startswith("error: done, but standard output is closed")
    else:
        assert (status, err) == (0, "")
        assert out.splitlines()[-1] == f"written: {recorded}/README.md, report.html, report.json"
        assert r"\u" in out


def test_files_do_not_take_the_number_of_a_closed_stream(tmp_path):
    """What is printed past Python, or by a child, would go into the first file that is opened."""

    def act() -> None:
        os.closerange(0, 3)
        sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]
        console.ready()
        (tmp_path / "number").write_text(str(os.open(tmp_path, os.O_RDONLY)))
        print("lost", file=sys.stderr)
        print(input())

    assert Fork(act, clean_environment()).finish()[1:] == ("", "")  # `input` finds the end of the file
    assert int((tmp_path / "number").read_text()) > 2


@cases("""
    shell         | status | out | err
    --version >&- | 2 | "" | error: done, but standard output is closed, so what it prints is lost
    score task=sst5 gold=/no predictions=/no >&- | 2 | "" | error: /no: no such file
    score task=sst5 gold=/no predictions=/no 2>&- | 2 | "" | ""
    score task=sst5 gold=/no predictions=/no 2>/dev/full | 2 | "" | ""
    --version <&- | 0 | "elmo_bench " | ""
    --version 1</dev/null | 2 | "" | error: standard output or a temporary file: is not open for writing
    --version >/dev/full | 2 | "" | error: standard output or a temporary file: no space left
""")
def test_a_process_with_odd_streams_ends_in_one_line(shell, status, out, err):
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m elmo_bench {shell}', sys.executable], cwd=places.ROOT, env=clean_environment(),
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout[: len(out) or 1]) == (status, out)
    assert done.stderr.startswith(err)
    assert done.stderr.count("\n") == bool(err)

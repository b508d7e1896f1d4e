"""Standard streams that are closed, or that cannot show every character."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elmo_bench import __main__
from elmo_bench.system import console, places
from tests.command import Fork
from tests.conftest import PATIENCE, ROOT, clean_environment
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


def test_files_do_not_take_the_number_of_a_closed_stream(tmp_path, file):
    """What is printed past Python, or by a child, would go into the first file that is opened."""

    def act() -> None:
        os.closerange(0, 3)
        sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]
        console.ready()
        file(str(os.open(tmp_path, os.O_RDONLY)), "number")
        print("lost", file=sys.stderr)
        print(input())

    assert Fork(act, clean_environment()).finish()[1:] == ("", "")  # `input` finds the end of the file
    assert int((tmp_path / "number").read_text()) > 2


@cases("""
    shell         | status | out | err
    --version >&- | 2 | "" | error: done, but standard output is closed, so the output is lost
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


# Signals end a command within seconds, in one line; what it has started ends with it, also where it is killed.


STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SWALLOWS = """
import ctypes, os, sys, threading, time
from elmo_bench.system import console, processes
processes.GRACE = 0.3
def main():
    print("begun", flush=True)
    try:
        {waiting}
    except KeyboardInterrupt:
        time.sleep(9999)
console.report(main, "go on")
"""
# Not one long sleep: a signal that comes between two steps of Python, just before it, would be heard at its end.
SLEEPS = "while True: time.sleep(0.1)"
PARENT = """
import sys
from elmo_bench.sweeps.local import Job, run_jobs
child = "import elmo_bench, os, time; from elmo_bench.system import processes; processes.end_with_parent();"
child += "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(9999)"
run_jobs([Job(name, [sys.executable, "-c", "import sys;" + child, name]) for name in sys.argv[1:]], 2)
"""


@pytest.fixture(autouse=True)
def hangup():
    """Not ignored, as it is where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def python(code: str, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    line = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        ["sh", "-c", f'{before} exec "$@"', "sh", *line] if before else line, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("number", STATUS)
def test_a_signal_is_one_line(number, capsys):
    before = [signal.getsignal(one) for one in STATUS]
    name = "" if number == signal.SIGINT else f" ({number.name})"
    with pytest.raises(SystemExit) as ended:
        console.report(lambda: (os.kill(os.getpid(), number), time.sleep(20)), "it goes on")
    assert (ended.value.code, capsys.readouterr().err) == (STATUS[number], f"interrupted{name}; it goes on\n")
    assert [signal.getsignal(one) for one in STATUS] == before
    assert signal.set_wakeup_fd(-1) == -1


TWICE = """
import os, signal, time
from elmo_bench.system import console
def main():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(9)
    finally:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
console.report(main, "go on")
"""


def test_a_second_signal_says_nothing_more():
    with python(TWICE) as command:
        assert command.communicate(timeout=PATIENCE)[1] == "interrupted (SIGTERM); go on\n"


def test_what_a_library_makes_of_an_interrupt_is_the_same_line(capsys):
    def wrap(error: type[BaseException]):
        def main():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(20)
            except KeyboardInterrupt:
                raise error("broken") from None

        return main

    for error in (RuntimeError, SystemExit):
        with pytest.raises(SystemExit) as ended:
            console.report(wrap(error))
        assert ended.value.code == 143
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_ignored_signal_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        assert console.report(lambda: os.kill(os.getpid(), signal.SIGHUP) or 3) == 3
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("waiting", ["time.sleep(9999)", "[ctypes.CDLL(None).sleep(9999) for _ in range(2)]"])
def test_a_command_that_does_not_end_is_ended(waiting):
    process = python(SWALLOWS.format(waiting=waiting))
    assert process.stdout.readline() == "begun\n"
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (143, "interrupted (SIGTERM); go on\n")


def test_a_signal_while_modules_are_imported_is_one_line():
    code = "import sys; sys.argv[0] = '-m'; import elmo_bench, time; print('begun', flush=True)\n"
    process = python(code + SLEEPS)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said == "interrupted; run the command again\n"


def test_a_signal_in_code_made_from_text_ends_with_the_same_status(tmp_path):
    """Python's dataclasses are such code; `-m` ends another way than a script."""
    text = "import os, time; os.kill(os.getpid(), 15); time.sleep(9999)"
    (tmp_path / "made.py").write_text(
        f"from elmo_bench.system import console\nconsole.report(lambda: exec({text!r}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-m", "made"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (143, "interrupted (SIGTERM); run the command again\n")


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts as ended."""
    status = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return status.is_file() and status.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_jobs_end_with_the_one_who_started_them(tmp_path, number):
    files = [tmp_path / name for name in ("one", "two")]
    process = python(PARENT, *map(str, files))
    while not all(file.is_file() and file.read_text() for file in files):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    process.wait(PATIENCE)
    until = time.monotonic() + PATIENCE
    while not all(gone(int(file.read_text())) for file in files):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_child_whose_parent_is_gone_already_ends_at_once():
    code = "from elmo_bench.system import processes; processes.end_with_parent(1 << 22); print('still here')"
    process = python(code)
    assert process.communicate(timeout=PATIENCE)[0] == ""
    assert process.returncode == -signal.SIGKILL

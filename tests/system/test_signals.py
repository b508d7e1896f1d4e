"""Signals end a command within seconds, in one line; what it has started ends with it, also where it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elmo_bench.system.terminal import console
from tests.conftest import PATIENCE, ROOT

pytestmark = pytest.mark.slow

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SWALLOWS = """
import ctypes, os, sys, threading, time
from elmo_bench.system.terminal import console
from elmo_bench.system.terminal import signals
signals.GRACE = 0.3
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
child = "import elmo_bench, os, time; from elmo_bench.system import children; children.end_with_parent();"
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
from elmo_bench.system.terminal import console
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
        f"from elmo_bench.system.terminal import console\nconsole.report(lambda: exec({text!r}))\n"
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
    code = "from elmo_bench.system import children; children.end_with_parent(1 << 22); print('still here')"
    process = python(code)
    assert process.communicate(timeout=PATIENCE)[0] == ""
    assert process.returncode == -signal.SIGKILL

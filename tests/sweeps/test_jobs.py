"""Several commands at once: their lines, their errors, their end."""

import os
import signal
import sys
import threading
import time

import pytest

from elmo_bench.sweeps.local import Job, run_jobs
from elmo_bench.system.console import LINES, tell
from elmo_bench.system.errors import Interrupted, UserError

pytestmark = pytest.mark.slow


def job(title: str, code: str) -> Job:
    return Job(title, [sys.executable, "-c", code])


def test_lines_come_through_under_the_name_of_their_job(capsys):
    assert (
        run_jobs([job("one", "print('one: training'); print('caching')"), job("two", "print('two')")], 2) == [None] * 2
    )
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["one: caching", "one: training", "two"]


def test_no_more_than_so_many_run_at_a_time(tmp_path, capsys):
    code = (
        "import pathlib, sys, time; here = pathlib.Path(sys.argv[1]); mine = here / sys.argv[2]; mine.touch();"
        "time.sleep(0.2); print(len(list(here.iterdir()))); mine.unlink()"
    )
    jobs = [Job(str(i), [sys.executable, "-c", code, str(tmp_path), str(i)]) for i in range(5)]
    assert run_jobs(jobs, 2) == [None] * 5
    together = [int(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert len(together) == 5
    assert max(together) <= 2


def test_what_a_user_can_mend_is_the_error_of_a_job_and_the_others_still_run(capsys):
    wrong = "import sys; print('error: a.txt:3: no tag', file=sys.stderr); sys.exit(2)"
    killed = "import sys; print('error: device 1 was killed', file=sys.stderr); sys.exit(75)"  # another start mends it
    jobs = [job("wrong", wrong), job("killed", killed), job("crash", "1 / 0"), job("right", "print('done')")]
    *errors, ended = run_jobs([*jobs, job("ended", "import os; os.kill(os.getpid(), 9)")], 1)
    assert "ended: was killed by SIGKILL" in str(ended)
    assert [error and (type(error), str(error)) for error in errors] == [
        (UserError, "a.txt:3: no tag"),
        (Interrupted, "device 1 was killed"),
        (UserError, "crash: failed with exit status 1; its output is above"),
        None,
    ]
    out = capsys.readouterr().out
    assert "crash: ZeroDivisionError: division by zero" in out
    assert "right: done" in out
    assert "no tag" not in out


def test_each_job_has_its_share_of_the_cores(capsys, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("elmo_bench.system.machine.cores", lambda: 6)
    run_jobs([job("share", "import os; print(os.environ['OMP_NUM_THREADS'])")], 3)
    assert capsys.readouterr().out == "share: 2\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_job(number, tmp_path):
    code = (
        "import pathlib, sys, time\n"
        "try:\n"
        "    pathlib.Path(sys.argv[1]).write_text('begun')\n"
        "    while True: time.sleep(0.1)\n"
        "except KeyboardInterrupt: pathlib.Path(sys.argv[1]).write_text('interrupted')"
    )
    files = [tmp_path / name for name in ("one", "two")]
    jobs = [Job(file.name, [sys.executable, "-c", code, str(file)]) for file in files]

    def interrupt() -> None:
        while not all(file.is_file() and file.read_text() for file in files):
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, 2)
    assert [file.read_text() for file in files] == ["interrupted"] * 2


def test_how_far_a_job_is_tells_only_who_asked(capsys, monkeypatch):
    tell("epoch 1")
    assert capsys.readouterr().out == ""
    monkeypatch.setenv(LINES, "1")
    tell("epoch 1")
    said = capsys.readouterr().out
    assert said.endswith("epoch 1\n")
    monkeypatch.delenv(LINES)
    assert run_jobs([job("quiet", f"print({said!r}, end='')")], 1) == [None]
    assert capsys.readouterr().out == ""  # it takes the place of the last such line, and there is no terminal


def test_whoever_asks_is_told_when_a_job_has_ended(capsys):
    ended = []
    jobs = [job("wrong", "import sys; sys.exit(1)"), job("right", "")]
    run_jobs(jobs, 1, lambda i, error: ended.append((i, error)) or f"{len(ended)} of 2")
    assert [(i, error is None) for i, error in ended] == [(0, False), (1, True)]
    assert capsys.readouterr().out == "1 of 2\n2 of 2\n"

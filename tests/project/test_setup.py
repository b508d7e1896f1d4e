"""How `make` sets up .venv: once at a time, and never into one that belongs to another checkout."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, ROOT, clean_environment
from tests.fakes import cases, for_each

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine"),
]

# Stands in for Python: makes a .venv of itself, and notes what pip is asked to install, which lasts as long as there is
# a file `hold`. Only the lock is a real one.
STUB = f"""#!/bin/sh
case "$*" in
  *flock*) exec {sys.executable} "$@" ;;
  -c*) echo 'BASE' ;;
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip config"*) exit 1 ;;
  *pip*"${{LACKING:-nothing}}"*) echo "$*" >> pip.log; exit 1 ;;
  *pip*) echo "$*" >> pip.log; while test -e hold; do sleep 0.05; done; exit "${{PIP_STATUS:-0}}" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """What setting up needs of a checkout, with the stub as its Python."""
    return make_checkout(tmp_path)


ON_CLUSTER = shutil.which("sinfo") is not None and not subprocess.run(["sinfo", "-h"], capture_output=True).returncode


def make_checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout"
    (folder / ".ci").mkdir(parents=True)
    for name in "Makefile .ci/setup pyproject.toml constraints.txt".split():
        shutil.copy(ROOT / name, folder / name)
    (tmp_path / "python").write_text(STUB.replace("BASE", str(tmp_path / "python")))
    (tmp_path / "python").chmod(0o755)
    return folder


def start(folder: Path, target: str = "setup", user: int | None = None, **environment: str) -> subprocess.Popen:
    if ON_CLUSTER and "TORCH=" not in target:  # where a build must be named
        target += " TORCH=cuda"
    environment = clean_environment() | environment
    return subprocess.Popen(
        ["make", *target.split(), f"PYTHON={folder.parent / 'python'}"], cwd=folder, env=environment,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, user=user,
    )  # fmt: skip


def end(process: subprocess.Popen) -> tuple[int, list[str]]:
    """The exit status, and what was said on stderr, make's own line aside."""
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, [line for line in err.splitlines() if not line.startswith("make:")]


def installed(folder: Path) -> list[str]:
    """The calls of pip."""
    log = folder / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def steps(folder: Path) -> list[str]:
    """What was installed, by what: torch and uv by pip, all else by uv, in this order."""
    return [" ".join((call.split()[1], call.split()[-1].partition("==")[0])) for call in installed(folder)]


WHOLE = ["pip torch", "pip uv", "uv .[dev]"]


def on_linux(folder: Path, gpu: bool) -> str:
    """A PATH on which the system is Linux, with a GPU of NVIDIA's or without."""
    programs = folder.parent / "programs"
    programs.mkdir()
    for name, line in (("uname", "echo Linux"), ("nvidia-smi", f"exit {0 if gpu else 9}")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    return f"{programs}:{os.environ['PATH']}"


def test_the_first_call_installs_and_the_second_does_not(checkout):
    assert end(start(checkout))[0] == 0
    assert steps(checkout) == WHOLE
    assert end(start(checkout)) == (0, [])
    assert steps(checkout) == WHOLE


without_a_gpu = pytest.mark.skipif(
    os.path.exists("/proc/driver/nvidia/version") or ON_CLUSTER, reason="there is an NVIDIA GPU, or a cluster of Slurm"
)


@without_a_gpu
def test_without_a_gpu_the_cpu_build_is_installed_and_every_step_is_told(checkout):
    status, said = end(start(checkout, PATH=on_linux(checkout, gpu=False)))
    assert status == 0
    torch, _, rest = installed(checkout)
    assert torch.endswith("+cpu")
    assert "torch==" in torch
    assert rest.endswith("-e .[dev]")
    assert [line[:14] for line in said[:3]] == ["setup, 1 of 3:", "setup, 2 of 3:", "setup, 3 of 3:"]
    assert "GB" in said[0]
    assert "there is no NVIDIA GPU here" in said[1]
    assert said[3].startswith("setup took ")


@without_a_gpu
def test_where_no_index_has_the_cpu_build_the_plain_one_is_installed(checkout):
    status, said = end(start(checkout, PATH=on_linux(checkout, gpu=False), LACKING="+cpu"))
    assert status == 0
    assert steps(checkout) == ["pip torch", *WHOLE]
    assert not installed(checkout)[1].endswith("+cpu")
    assert "no index has its CPU build" in said[2]


@without_a_gpu
def test_on_a_login_node_of_slurm_the_build_must_be_given(checkout):
    path = on_linux(checkout, gpu=False)
    for name, line in (("sbatch", "exit 0"), ("sinfo", "exit 1")):  # packages alone are no cluster
        (checkout.parent / "programs" / name).write_text(f"#!/bin/sh\n{line}\n")
        (checkout.parent / "programs" / name).chmod(0o755)
    assert end(start(checkout, PATH=path))[0] == 0
    shutil.rmtree(checkout / ".venv")
    (checkout / "pip.log").unlink()
    (checkout.parent / "programs" / "sinfo").write_text("#!/bin/sh\n")
    status, said = end(start(checkout, PATH=path))
    assert (status, len(said)) == (2, 1)
    assert "make setup TORCH=cuda" in said[0]
    assert installed(checkout) == []
    for build, cpu in (("cuda", False), ("cpu", True)):
        shutil.rmtree(checkout / ".venv", ignore_errors=True)
        (checkout / "pip.log").unlink(missing_ok=True)
        assert end(start(checkout, f"setup TORCH={build}", PATH=path))[0] == 0
        assert installed(checkout)[0].endswith("+cpu") is cpu
        assert "torch==" in installed(checkout)[0]


def test_with_a_gpu_the_plain_build_is_installed_and_torch_can_name_any(checkout):
    path = on_linux(checkout, gpu=True)
    assert end(start(checkout, PATH=path))[0] == 0
    assert "+cpu" not in installed(checkout)[0]
    shutil.rmtree(checkout / ".venv")
    command = [".ci/setup", "torch==2.6.0 --no-deps", str(checkout.parent / "python")]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    assert installed(checkout)[3].endswith(" torch==2.6.0 --no-deps")


@pytest.mark.parametrize("lacking", ["-q uv", "install -q --compile-bytecode"])  # not to be had; had, and it fails
def test_without_uv_the_packages_are_installed_by_pip(checkout, lacking):
    status, said = end(start(checkout, LACKING=lacking))
    assert status == 0
    assert steps(checkout)[-1] == "pip .[dev]"
    assert any("by pip" in line for line in said)


BUSY = (2, ["another process is setting up .venv; wait for it"])


def held(folder: Path, process: subprocess.Popen) -> subprocess.Popen:
    """The process, as soon as its pip is at work."""
    while not installed(folder):
        assert process.poll() is None
        time.sleep(0.02)
    return process


def test_several_at_once_do_not_race(checkout):
    (checkout / "hold").touch()
    several = [start(checkout) for _ in range(4)]
    while sum(process.poll() is None for process in several) > 1:
        time.sleep(0.02)
    (checkout / "hold").unlink()
    assert sorted(end(process)[0] for process in several) == [0, 2, 2, 2]
    assert steps(checkout) == WHOLE


def test_the_pip_of_a_killed_one_is_not_disturbed(checkout):
    (checkout / "hold").touch()
    command = [".ci/setup", "torch", str(checkout.parent / "python")]
    killed = held(checkout, subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE))
    killed.kill()
    assert end(start(checkout)) == BUSY
    (checkout / "hold").unlink()
    killed.communicate(timeout=PATIENCE)  # until pip has ended, too
    assert end(start(checkout))[0] == 0
    assert (checkout / ".venv" / "ready").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_a_set_up_of_another_user_is_not_removed_under_them(open_folder):
    checkout = make_checkout(open_folder)
    (checkout / "hold").touch()
    for path in (checkout, *checkout.rglob("*")):
        path.chmod(0o777)
    first = held(checkout, start(checkout))
    assert end(start(checkout, user=65534)) == BUSY
    (checkout / "hold").unlink()
    assert end(first)[0] == 0


def test_one_that_was_killed_is_started_anew_and_one_that_failed_is_continued(checkout):
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "half").touch()
    (checkout / ".venv" / "unfinished").touch()
    assert end(start(checkout, PIP_STATUS="1"))[0] == 2
    assert not (checkout / ".venv" / "half").exists()
    (checkout / ".venv" / "kept").touch()
    assert end(start(checkout))[0] == 0
    assert (checkout / ".venv" / "kept").exists()


def test_a_link_is_used_as_it_is(checkout, tmp_path):
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    shutil.copy(tmp_path / "python", other / "bin" / "python")
    (checkout / ".venv").symlink_to(other)
    process = start(checkout)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert f"a link to {other}, used unchanged" in out
    assert installed(checkout) == []
    assert not (other / "ready").exists()
    shutil.rmtree(other)
    status, said = end(start(checkout))
    assert status == 2
    assert len(said) == 1
    assert "which has no Python" in said[0]


def test_a_copy_of_another_checkouts_venv_is_refused(checkout, tmp_path):
    packages = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "_elmo_bench.pth").write_text(str(tmp_path / "elsewhere"))
    status, said = end(start(checkout, "report"))
    assert (status, len(said)) == (2, 1)
    assert f"belongs to the checkout {tmp_path / 'elsewhere'}; remove it" in said[0]
    assert installed(checkout) == []
    (packages / "_elmo_bench.pth").write_text(str(checkout))
    assert end(start(checkout))[0] == 0


def test_without_a_fitting_python_nothing_is_left(checkout):
    (checkout.parent / "python").unlink()
    process = start(checkout)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "no Python 3.11 to 3.13" in err
    assert not (checkout / ".venv").exists()
    assert not (checkout / ".venv.lock").exists()


@cases("""
    given                                | installs_them
    ["SCALE=open"]                       | true
    []                                   | false
    ["SCALE=paper"]                      | false
    ["SCALE=open", "ARGS=recorded=true"] | false
    ["SCALE=open", "VECTORS_ROOT=.."]    | false
""")
def test_the_pair_of_open_brings_its_word_vectors(checkout, given, installs_them):
    (checkout.parent / "glove.6B.50d.txt").touch()
    for target in ("reproduce", "sweep"):
        done = subprocess.run(["make", "-n", target, *given], cwd=checkout, capture_output=True, text=True, check=True)
        assert ("-e '.[glove]'" in done.stdout) is installs_them


@for_each("given", "task=sst5 elmo.dropout=0.9 SEED=3 TASKS=srl DATAROOT=/x")
def test_a_key_of_the_configuration_and_a_misspelt_variable_are_no_variables_of_make(checkout, given):
    done = subprocess.run(["make", "-n", "reproduce", given], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{given.partition('=')[0]}=...: make ignores it; its variables are TASK SCALE SEEDS" in done.stderr


def test_table_7_is_of_the_task_that_is_typed(checkout):
    for given, task in ([], "all"), (["TASK=snli"], "snli"):
        command = ["make", "-n", "table", "N=7", *given]
        assert f"tune 'task={task}'" in subprocess.run(command, cwd=checkout, capture_output=True, text=True).stdout

"""Memory that is freed and needed again is not zeroed by the system each time."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

STEPS = """
import resource, sys, torch
from elmo_bench.system import allocator
if sys.argv[1] == "keep" and not allocator.keep_freed():
    sys.exit(3)
def step():
    torch.ones(1 << 24)  # 64 MiB: malloc gives so much back by default
for _ in range(20):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages that ten steps touch anew."""
    done = subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc")
    return int(done.stdout)


def test_freed_memory_stays_with_the_process():
    assert faults("keep") < 100 < faults("default")

"""What a process asks of the machine."""

import platform
import subprocess
import sys

import pytest

from elmo_bench.system import machine

WHERE = """
import ctypes
from elmo_bench.system import machine
{keep}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
place = libc.malloc(ctypes.c_size_t(64 << 20))
for line in open("/proc/self/maps"):
    first, last = (int(end, 16) for end in line.split()[0].split("-"))
    if first <= place < last:
        print("[heap]" in line)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
@pytest.mark.parametrize(("keep", "kept"), [("", "False"), ("machine.keep_freed_memory()", "True")])
def test_large_arrays_come_from_memory_that_is_kept(keep, kept):
    command = [sys.executable, "-c", WHERE.format(keep=keep)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=machine.ROOT)
    assert done.stdout.strip() == kept

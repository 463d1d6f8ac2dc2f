import subprocess
import sys

import pytest

FREED = """
import os
from anharmonic._processes import return_large_blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

{setting}
largest = bytearray(20_000_000)
del largest  # glibc now keeps blocks up to this size
pairs = [(bytearray(2_000_000), bytearray(200_000)) for _ in range(20)]
before = resident()
between = [small for large, small in pairs]  # the heap cannot shrink from its end
del pairs
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_large_blocks_are_returned():
    code = FREED.format(setting="return_large_blocks()")
    freed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert int(freed.stdout) > 35_000_000

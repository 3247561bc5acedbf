"""The machine of a measurement: its description, and the memory of a process."""

import subprocess
import sys

import numpy as np
import pytest

from npformer.bench import machine


def test_the_machine():
    about = machine.describe()
    assert about["machine"]["cores"] >= 1
    assert about["machine"]["cpu"]
    assert about["versions"]["numpy"] == np.__version__
    assert about["date"].startswith("20")
    assert [machine.is_busy({"load": load, "cores": 2}) for load in (2.0, 0.1, None)] == [True, False, False]


@pytest.mark.skipif(not machine.STATUS.exists(), reason="needs /proc")
def test_peak_and_resident_memory():
    # in a process of its own, since this one keeps freed memory once workers have run in it
    code = """if True:
        import numpy as np
        from npformer.bench import machine

        before = machine.resident()
        block = np.ones(20_000_000)  # 160 MB
        assert machine.resident() > before + 0.9 * block.nbytes
        del block
        assert machine.peak() > before + 100_000_000
        assert machine.resident() < before + 100_000_000
    """
    subprocess.run([sys.executable, "-c", code], check=True)

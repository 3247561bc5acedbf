"""The sdist contains every file of the checkout, so its tests run after unpacking."""

import subprocess
import sys

import pytest
from paths import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_every_file_of_the_checkout_is_in_the_sdist(tmp_path):
    """egg_info writes the list of files that sdist packs."""
    pytest.importorskip("setuptools")
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    packed = (tmp_path / "npformer.egg-info" / "SOURCES.txt").read_text(encoding="utf-8").splitlines()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    present = {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()}
    assert sorted(present - set(packed)) == []

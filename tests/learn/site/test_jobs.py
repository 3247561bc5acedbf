"""Jobs in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

CODE = """
import os, sys, time
from functools import partial
from pathlib import Path
from npformer.learn.site.jobs import run_jobs

def job(place):
    Path(place, f"pid-{os.getpid()}").touch()
    time.sleep(600)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run_jobs([partial(job, folder.parent)] * 4, folder, 2, lambda: None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")
def test_workers_end_and_their_folder_goes_when_the_first_process_is_killed(tmp_path):
    folder, program = tmp_path / "temporary", tmp_path / "program.py"
    folder.mkdir()
    program.write_text(CODE)
    with subprocess.Popen([sys.executable, program, folder]) as process:
        wait_until(lambda: len(list(tmp_path.glob("pid-*"))) == 2)
        process.kill()
    numbers = [path.name.removeprefix("pid-") for path in tmp_path.glob("pid-*")]
    wait_until(lambda: not any(Path("/proc", number).exists() for number in numbers))
    wait_until(lambda: not folder.exists())

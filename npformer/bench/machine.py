"""The machine, the versions and the memory of a measurement."""

import datetime
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from npformer.backend import choose_backend
from npformer.errors import UserError

PACKAGES = ("npformer", "numpy", "cupy", "torch")
BUSY = 0.3  # running processes per core, the mean of a minute, above which measurements are marked as rough
STATUS = Path("/proc/self/status")


def describe() -> dict[str, Any]:
    """Return the machine, the versions and the date."""
    return {
        "machine": {"cpu": cpu(), "cores": cores(), "kernels": kernels(), "gpu": gpu(), "load": load()},
        "versions": {"python": platform.python_version(), **versions()},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def cpu() -> str:
    """Return the name of the processor, or of its architecture if the system does not provide the name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def kernels() -> str | None:
    """Return the name of the kernels that OpenBLAS has to take; None if it chooses them itself."""
    return os.environ.get("OPENBLAS_CORETYPE") or None


def gpu() -> str:
    """Return a sentence that says whether CuPy can use a GPU."""
    try:
        choose_backend("cupy")
    except UserError as error:
        return str(error).partition(":")[0].replace("backend cupy needs", "none measured: it needs")
    return "there is one: --backend cupy measures on it"


def load() -> float | None:
    """Return the mean number of running processes of the last minute; None if it is unknown."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def is_busy(machine: dict[str, Any]) -> bool:
    """Return True if other processes use the machine so much that measurements are rough."""
    return bool((machine["load"] or 0.0) > BUSY * machine["cores"])


def versions() -> dict[str, str]:
    """Return the versions of the installed packages that a measurement may use."""
    installed = {}
    for name in PACKAGES:
        for distribution in importlib.metadata.distributions():
            known = distribution.metadata["Name"] or ""
            if known == name or (name == "cupy" and known.startswith("cupy-")):
                installed[name] = distribution.version
                break
    return installed


def resident() -> int | None:
    """Return the bytes that this process has in memory now; None if the system does not report them."""
    return _status("VmRSS")


def peak() -> int | None:
    """Return the most bytes that this process has had in memory; None if the system does not report them."""
    # Linux's ru_maxrss begins with the memory of the parent process; VmHWM does not
    return _status("VmHWM") or _max_rss()


def _status(field: str) -> int | None:
    try:
        match = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:  # not Linux
        return None
    return int(match[1]) * 1024 if match else None


def _max_rss() -> int | None:
    if os.name != "posix":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts in bytes, others in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

"""On what was measured, with what, and when."""

import datetime
import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

from npformer.backend import choose_backend
from npformer.errors import UserError

PACKAGES = ("npformer", "numpy", "cupy", "torch")
BUSY = 0.3  # other processes on a core, above which figures are rough


def describe() -> dict[str, Any]:
    """The machine, the versions and the date."""
    return {
        "machine": {"cpu": cpu(), "cores": cores(), "gpu": gpu(), "load": load()},
        "versions": {"python": platform.python_version(), **versions()},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def cpu() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu() -> str:
    """A sentence that says whether there is a GPU that CuPy reaches."""
    try:
        choose_backend("cupy")
    except UserError as error:
        return str(error).partition(":")[0].replace("backend cupy needs", "none measured: it needs")
    return "there is one: --backend cupy measures on it"


def load() -> float | None:
    """How many processes ran during the last minute, on the mean; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def is_busy(machine: dict[str, Any]) -> bool:
    """Whether others used the machine so much, before measuring began, that figures are rough."""
    return (machine["load"] or 0.0) > BUSY * machine["cores"]


def versions() -> dict[str, str]:
    """The packages that a measurement may use, where they are installed."""
    found = {}
    for name in PACKAGES:
        for distribution in importlib.metadata.distributions():
            known = distribution.metadata["Name"] or ""
            if known == name or (name == "cupy" and known.startswith("cupy-")):
                found[name] = distribution.version
                break
    return found

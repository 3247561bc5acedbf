"""How much memory this process holds, and the most that it ever held."""

import os
import re
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def resident() -> int | None:
    """Bytes in memory now; None where the system does not tell."""
    return _status("VmRSS")


def peak() -> int | None:
    """The most bytes in memory since the process began; None where the system does not tell."""
    # Linux's ru_maxrss begins with what the parent held when it started this process; VmHWM does not
    return _status("VmHWM") or _max_rss()


def _status(field: str) -> int | None:
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:  # not Linux
        return None
    return int(found[1]) * 1024 if found else None


def _max_rss() -> int | None:
    if os.name != "posix":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # it counts in bytes, everyone else in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

"""Confinement of a learner's process on Linux: no network, no other processes, and no files of others.

None of this needs privileges, and each part is left out where the system does not have or allow it:

- Namespaces for processes, for the network and for shared memory. A process of the learner sees only those
  that it has started, and they all end with the first of them (`man 7 pid_namespaces`).
- Landlock, for the solutions of others: files are read where Python and npformer lie, and written in one
  folder (https://docs.kernel.org/userspace-api/landlock.html).
"""

import contextlib
import ctypes
import os
import struct
import sys
import sysconfig
from pathlib import Path

import numpy as np

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_NEW_USER, _NEW_PID, _NEW_NET, _NEW_IPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the system calls of Landlock
_READ = 0b1101  # to execute and read files, and to list folders
_FILE_RIGHTS = 0b1100000000000111  # those of a file: execute, write, read, truncate, devices
_FIRST_RIGHTS, _MORE_RIGHTS = 13, {2: 14, 3: 15, 5: 16}  # rights on files by the version of Landlock
_NETWORK, _SCOPES = 0b11, 0b11  # to bind and connect; to reach sockets and to signal processes outside
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/proc/self", "/dev/urandom")


def prctl(option: int, value: int) -> None:
    """Set an option of this process on Linux."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def enter_namespaces() -> bool:
    """Give this process a network of its own, and the process that it starts next a numbering of its own.

    Returns:
        True if it has them. The next process is then the first one of its namespace.
    """
    if sys.platform != "linux":
        return False
    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None).unshare
    if unshare(_NEW_PID | _NEW_NET | _NEW_IPC) == 0:  # root
        return True
    if unshare(_NEW_USER | _NEW_PID | _NEW_NET | _NEW_IPC) != 0:
        return False
    with contextlib.suppress(OSError):  # files keep their owners
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    return True


def confine_to(folder: Path) -> None:
    """Let this process and those that it starts write only below a folder, and read only that and Python.

    They cannot connect to other machines or signal other processes either. Nothing changes without Landlock.
    """
    if sys.platform != "linux":
        return
    call = ctypes.CDLL(None).syscall
    version = call(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return
    rights = (1 << max([_FIRST_RIGHTS, *(n for least, n in _MORE_RIGHTS.items() if version >= least)])) - 1
    handled = struct.pack("=QQQ", rights, _NETWORK, _SCOPES)[
        : 8 if version < 4 else 16 if version < 6 else 24
    ]
    rules = call(_CREATE_RULESET, handled, len(handled), 0)
    packages = {Path(__file__).parents[2], Path(np.__file__).parents[1]}
    libraries = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    library = str(sysconfig.get_config_var("INSTSONAME"))  # libpython, which a shared build loads
    python = {Path(sys.executable), Path(sys.prefix, "pyvenv.cfg"), Path(sys.base_prefix, "lib", library)}
    for path in {*map(Path, _SYSTEM), *python, *packages, *libraries, folder.parent}:
        _allow(rules, path, _READ)
    _allow(rules, folder, rights)
    _allow(rules, Path(os.devnull), rights)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    """Add a rule for a file, or for a folder with everything below it, if it exists."""
    with contextlib.suppress(OSError):
        place = os.open(path, os.O_PATH)
        try:
            rule = struct.pack("=Qi", rights if path.is_dir() else rights & _FILE_RIGHTS, place)
            ctypes.CDLL(None).syscall(_ADD_RULE, rules, 1, rule, 0)
        finally:
            os.close(place)

"""Becomes another account that keeps root's right to pass through folders, and executes a command. A script of its own.

    python -I -S become.py UID GID COMMAND ARGUMENT...

For what lies below a folder that is closed to the account, as /root is, without opening it to everybody. Linux only.
Standard library only, and as little of it as possible: the server's start waits for it.
"""

from __future__ import annotations

import ctypes
import os
import sys

CAPABILITIES_VERSION = 0x20080522  # of linux/capability.h: two words per set
DAC_OVERRIDE = 1
TO_HAND_OVER = {"chown": 0, "dac_override": DAC_OVERRIDE, "kill": 5, "setgid": 6, "setuid": 7}
"""What root needs to run a server as another account: give it a folder, reach its socket, stop it. Numbers of bits."""
TO_PASS = {"setpcap": 8}
"""What it needs besides to lend its right to pass through closed folders."""

SET_SECUREBITS = 28
NO_SETUID_FIXUP = 1 << 2
AMBIENT, AMBIENT_RAISE = 47, 2


def missing(held: int, needed: dict[str, int]) -> list[str]:
    """The names of the needed capabilities that are not among the held ones, as in `CapEff` of /proc/self/status."""
    return [name for name, bit in needed.items() if not held & 1 << bit]


def become(uid: int, gid: int) -> None:
    """Change to the account, with the one capability that passes through folders. Raises `OSError` where it is refused.

    PostgreSQL's programs look for each other with access(2), which ignores the capabilities of an ordinary account
    unless the securebit is set.
    """
    _call("prctl", SET_SECUREBITS, NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    kept = 1 << DAC_OVERRIDE
    _call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, kept))
    _call("prctl", AMBIENT, AMBIENT_RAISE, DAC_OVERRIDE, 0, 0)


def _call(name: str, *arguments: object) -> None:
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])

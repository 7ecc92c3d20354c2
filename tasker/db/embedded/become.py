"""Script that changes to another account, keeps root's right to traverse folders, and executes a command.

    python -I -S become.py UID GID COMMAND ARGUMENT...

It is for paths below a folder closed to the account, such as /root, without opening that folder to everybody. Linux
only. It uses only the standard library, and little of it, because the start of the server waits for it.
"""

from __future__ import annotations

import ctypes
import os
import sys

CAPABILITIES_VERSION = 0x20080522  # of linux/capability.h: two words per set
DAC_OVERRIDE = 1
TO_HAND_OVER = {"chown": 0, "dac_override": DAC_OVERRIDE, "kill": 5, "setgid": 6, "setuid": 7}
"""Capabilities (bit numbers) that root needs to give the server's account a folder, reach its socket and stop it."""
TO_PASS = {"setpcap": 8}
"""Additional capabilities that root needs to pass on its right to traverse closed folders."""

SET_SECUREBITS = 28
NO_SETUID_FIXUP = 1 << 2
AMBIENT, AMBIENT_RAISE = 47, 2


def missing(held: int, needed: dict[str, int]) -> list[str]:
    """Return the names of needed capabilities missing from `held` (bits as in `CapEff` of /proc/self/status)."""
    return [name for name, bit in needed.items() if not held & 1 << bit]


def become(uid: int, gid: int) -> None:
    """Change to the account, keeping the capability to traverse folders. Raises `OSError` if the system refuses.

    PostgreSQL's programs look for each other with access(2), which ignores the capabilities of an ordinary account
    unless the securebit is set.
    """
    _call("prctl", SET_SECUREBITS, NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    capability_mask = 1 << DAC_OVERRIDE
    _call("capset", header, (ctypes.c_uint32 * 6)(capability_mask, capability_mask, capability_mask))
    _call("prctl", AMBIENT, AMBIENT_RAISE, DAC_OVERRIDE, 0, 0)


def _call(name: str, *arguments: object) -> None:
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])

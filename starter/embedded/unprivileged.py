"""Gives up root, then becomes the program: `python unprivileged.py UID GID PROGRAM ARGUMENT…`.

Postgres refuses to run as root, yet a root user's checkout often lies under a folder that nobody else may
enter (/root is 0700). Where Linux allows it, one capability stays: reaching files in spite of their modes.
Everything root else could do is gone. Without that capability the plain account must do.
"""

import ctypes
import os
import sys

_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 28, 47, 2
_NO_SETUID_FIXUP = 1 << 2
"""Without it the kernel's access(2) forgets the capability, and Postgres asks access(2) for its own file."""
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def become(uid: int, gid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    keeps = libc is not None and libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0) == 0
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if libc is None or not keeps:
        return
    kept = 1 << _CAP_DAC_OVERRIDE
    header = _Header(_CAPABILITY_VERSION_3, 0)
    if libc.capset(ctypes.byref(header), (_Data * 2)(_Data(kept, kept, kept), _Data(0, 0, 0))) == 0:
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0)
        return
    libc.capset(ctypes.byref(header), (_Data * 2)())


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]))
    try:
        os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606
    except PermissionError:
        sys.exit(
            f"FATAL: the account with uid {sys.argv[1]}, as which root starts it, cannot reach {sys.argv[3]}: "
            "move the checkout to a folder that others may enter, or run as an ordinary user"
        )

"""Processes that end when whoever started them is gone, however that ended, so that nobody is left untended."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
# Found now: between a fork and the program that follows it nothing should be looked up.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends (Linux; elsewhere nothing).

    It outlives an exec, not a fork. Killed, not asked: whatever is kept is committed. See prctl(2), PR_SET_PDEATHSIG.
    """
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)

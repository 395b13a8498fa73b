"""A file that holds a secret: made whole or not at all, its owner's alone, and never in the place of another."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import Final

_MODE: Final = 0o600  # its owner alone
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""What a file system says that has no hard links, such as that of a memory card or some network shares."""


def written_once(path: Path, data: bytes) -> bool:
    """Write a file (mode 0600) unless one is there; whether this call has. Raise ``OSError`` as :func:`open` does.

    Whoever is killed meanwhile, or has no room, leaves no file of this name: an empty key would end each later start.
    """
    scratch = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _put(scratch, path)
    except FileExistsError:
        return False
    finally:
        scratch.unlink(missing_ok=True)
    return True


def _put(scratch: Path, path: Path) -> None:
    """Give a file its name; ``FileExistsError`` where another has it."""
    try:
        os.link(scratch, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
        try:
            os.replace(scratch, path)
        except BaseException:
            path.unlink(missing_ok=True)  # it is empty, and this call's own
            raise

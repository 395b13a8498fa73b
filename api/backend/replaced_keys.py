"""One of the service's keys is replaced on purpose: it was lost, or somebody else has it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from services.contracts.access.service_key import KEY_REPLACED
from services.contracts.errors import InvalidInputError, UnavailableError
from services.identity.service_keys import KEY_BYTES, MEANINGS, check_name, fingerprint, place, read_key
from services.process.private_files import made_once, private_folder


def replace_key(backend: Backend, actor: Actor, name: str, reason: str, given: Path | None = None) -> str:
    """Let a new key be the service's, or the one in a file ``given``; its fingerprint.

    The store has it first, then the home folder: who is stopped in between starts nothing with the key of before, which
    is still there, and asks again. ``InvalidInputError`` for a name that no key has and for a file with another key of
    the service, ``UnavailableError`` for a file that cannot be read or written or holds no key.
    """
    path = backend.service_keys.path(check_name(name))
    key = secrets.token_bytes(KEY_BYTES) if given is None else read_key(given)
    for other in MEANINGS:
        known = backend.store.service_keys.find(other)
        if other != name and known is not None and known.fingerprint == fingerprint(other, key):
            raise InvalidInputError(f"{given} holds the service's {other}: name a file with a {name}")
    now, scratch = fingerprint(name, key), path.with_name(f"{name}.{secrets.token_hex(4)}")
    try:
        private_folder(path.parent)
        made_once(scratch, key.hex)
        with backend.store.atomic() as store:
            before = store.service_keys.replace(name, now, place(path))
            record(store, actor, KEY_REPLACED, f"key:{name}", before=before,
                   after={"fingerprint": now, "home": place(path)}, reason=reason)
        os.replace(scratch, path)
    except OSError as error:
        raise UnavailableError(f"the key {path} cannot be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)
    return now

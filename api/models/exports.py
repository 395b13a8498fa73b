"""Versions as files that leave: to run elsewhere, or to be checked there. The weights leave with each; it is noted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from api.backend.actor import Actor, record
from api.backend.wiring import Backend

Format = Literal["onnx", "c99"]
Precision = Literal["double", "float"]
MEDIA_TYPES = {"onnx": "application/octet-stream", "c99": "text/x-c; charset=utf-8"}
SUFFIXES = {"onnx": ".onnx", "c99": ".h"}


@dataclass(frozen=True)
class Export:
    """A file, its name, and the number of the version."""

    version: str
    name: str
    data: bytes


def note_certificate(backend: Backend, actor: Actor, name: str, version: str, file: str, data: bytes) -> None:
    """Put into the audit trail that a certificate file, or the bundle with it, was given out."""
    told = {"version": version, "file": file, "sha256": hashlib.sha256(data).hexdigest()}
    with backend.store.atomic() as store:
        record(store, actor, "model.certificate", f"model:{name}", after=told)


def export(
    backend: Backend, actor: Actor, name: str, version: str, form: Format, precision: Precision = "double"
) -> Export:
    """Export a version, by number or alias.

    ``NotFoundError`` where there is none, ``UnavailableError`` where a package is missing, ``ConflictError`` where it
    cannot be exported. Nothing is given out that the audit trail does not have.
    """
    from services.exporting.c99_header import c99_header
    from services.exporting.onnx_model import onnx_model

    found = backend.checked.get(name, version)
    single = precision == "float"
    data = onnx_model(found, single=single) if form == "onnx" else c99_header(found, single=single).encode()
    with backend.store.atomic() as store:
        told = {"format": form, "precision": precision, "sha256": hashlib.sha256(data).hexdigest()}
        record(store, actor, "model.export", f"model:{name}", after={"version": found.version} | told)
    return Export(found.version, f"{name}-{found.version}{SUFFIXES[form]}", data)

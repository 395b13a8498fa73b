"""What enrolled plants know of the plant link is never made anew in silence: the OEM's key, and the authority."""

from __future__ import annotations

from services.bus.configuration import BusFiles
from services.contracts.errors import ConflictError


def check_known_files(files: BusFiles, known_to: int) -> None:
    """Refuse to start where plants know the key or the authority of this folder and it is gone.

    With another key every plant would take the OEM for a stranger and every version would be signed by nobody; with
    another authority no plant could connect. ``known_to`` is the number of plants that were let in before. That all
    three files of the certificates are gone is how they are renewed (``ensure_certificates``), and is not refused.

    Raises
    ------
    ConflictError
        ``key_lost`` or ``certificate_lost``, with what to do.
    """
    if not known_to:
        return
    plants = f"{known_to} enrolled plant{'s' if known_to > 1 else ''}"
    if not files.coordinator_seed.exists():
        raise ConflictError(
            f"the OEM's key {files.coordinator_seed} is gone, and {plants} know it: put it back from a backup "
            "(`ballast restore` into another folder), or, where there is none, remove the plants (`ballast site "
            "remove`) and enrol them anew with the key that is made then",
            code="key_lost",
        )
    gone = [path.name for path in (files.authority, files.certificate, files.key) if not path.exists()]
    if 0 < len(gone) < 3:
        raise ConflictError(
            f"of the plant link's certificate in {files.folder} there is no {' and no '.join(gone)} any more, and "
            f"{plants} trust its authority: put it back from a backup, or delete ca.pem, server.pem and "
            "server.key there, start again, and give all plants the new ca.pem",
            code="certificate_lost",
        )

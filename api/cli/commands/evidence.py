"""``ballast evidence``: proof that a plant lied, from two signed answers; and the auditor who opens sums for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from api.backend.actor import local_administrator
from api.backend.wiring import open_backend
from api.cli.common import add_action, add_actions, tell
from api.sites.verdicts import file_verdict
from services.auditing.auditor import audit
from services.auditing.verdict import is_case, is_sum_evidence, judged, read_case, verify_sum_evidence
from services.contracts.errors import InvalidInputError, NotFoundError
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.process.command_line import add_json
from services.process.private_files import write_whole
from services.process.settings import Settings
from services.verification.contradiction import verify_evidence

VERDICT: Final = "verdict.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    proof = actions.add_parser("verify", help="prove it from the file alone; asks no server")
    proof.add_argument("file", type=Path, help="evidence file, as `ballast evidence save` writes it")
    new = actions.add_parser("new-auditor", help="write a new key for an auditor and print its public part")
    new.add_argument("file", type=Path, help="file for the key (mode 0600); it stays with the auditor")
    case = actions.add_parser("audit", help="open what the plants of a cohort sealed, and say which of them lied")
    case.add_argument("file", type=Path, help="case, as the coordinator writes it of a cohort that contradicts itself")
    case.add_argument("--key", type=Path, required=True, help="the auditor's key file")
    case.add_argument("--out", type=Path, required=True, help="folder for verdict.json and the evidence by plant")
    for parser_of in (proof, new, case):
        add_json(parser_of)
    filed = add_action(actions, "verdict", lambda *_: 0, "suspend the plants that an auditor's verdict convicts")
    filed.add_argument("file", type=Path, help="verdict.json, as `ballast evidence audit` writes it")
    about = "write the evidence against a plant, or the case of a cohort for the auditor, into a file"
    save = add_action(actions, "save", lambda *_: 0, about, "RUN_ID", "SITE")
    save.add_argument("file", type=Path, help="file to write")


def run(args: argparse.Namespace) -> int:
    """Do it; 0 where the contradiction is proven, or the file written."""
    if args.action == "verify":
        data = _read(args.file)
        lines = [*(verify_sum_evidence(data) if is_sum_evidence(data) else verify_evidence(data))]
        tell(args, {"proven": lines}, *lines)
        return 0
    if args.action == "new-auditor":
        key = new_seed_file(args.file)
        tell(args, {"public_key": key}, key)
        return 0
    if args.action == "audit":
        return _audited(args)
    with open_backend(Settings.load(args.home)) as backend:
        backend.check_store()
        if args.action == "verdict":
            lines = [*file_verdict(backend, local_administrator(), _read(args.file))]
            tell(args, {"done": lines}, *lines)
            return 0
        found = backend.store.runs.get_evidence(args.run_id, args.site)
    if found is None:
        raise NotFoundError(f"run {args.run_id} keeps no contradiction of {args.site}")
    _write({args.file: found})
    told = f"{args.file} holds the evidence; `ballast evidence verify {args.file}` proves it"
    if is_case(found):
        told = f"{args.file} is for the auditor: `ballast evidence audit {args.file} --key FILE --out FOLDER`"
    tell(args, {"file": str(args.file), "is_case": is_case(found)}, told)
    return 0


def _audited(args: argparse.Namespace) -> int:
    """Write the verdict, for the coordinator, and the evidence, which the auditor keeps; print the findings."""
    key, folder = args.key, args.out
    case = read_case(_read(args.file))
    verdict, evidence = judged(case, audit(case, key, case.cohort.audit_every_round), public_key(key), signer(key))
    written = folder / VERDICT
    _write({written: verdict.text(), **{folder / _file_of(site): data for site, data in evidence.items()}})
    tell(
        args, {"file": str(written), "findings": verdict.findings},
        *(f"{each.kind}: {each.text}" for each in verdict.findings),
        f"{written} is for the coordinator; the other files show answers of the plants they name",
    )
    return 0


def _file_of(site: str) -> str:
    """Name of the evidence against a plant; one that is called as the verdict gets a dot, which no plant's id has."""
    name = f"{site}.json"
    return name if name != VERDICT else f"{site}.evidence.json"


def _write(files: dict[Path, bytes]) -> None:
    """Write them, readable to their owner alone; refused where one is there and proves something else."""
    for path, data in files.items():
        if path.is_file() and _read(path) != data:
            raise InvalidInputError(f"{path} is there and holds something else: name another place")
    for path, data in files.items():
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, data, private=True)
        except OSError as error:
            raise InvalidInputError(f"cannot write to {path}: {error.strerror}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None

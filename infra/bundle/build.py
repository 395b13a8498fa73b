"""Make the offline bundle: ``python infra/bundle/build.py``. All that a host without network needs, and what it is.

``dist/ballast-bundle-VERSION/`` holds our wheel and those of every pinned dependency (``wheels/``), the lists of a
plant and of a server (``site.txt``, ``server.txt``: name, version, SHA-256), the digests of all files, a bill of
materials (``sbom.cdx.json``, CycloneDX 1.6), the licences (``licences.txt``) and ``install.sh``.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import materials  # noqa: E402  (beside this file, which is no package)

SETS = {"site": "[websocket]", "server": "[server,embedded]"}
CONSTRAINTS = ROOT / "infra" / "constraints.txt"


def main() -> int:
    """Build it; say where it is and how large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder that the bundle is made in")
    parser.add_argument("--only", choices=tuple(SETS), help="one set of the two, for a smaller bundle")
    chosen = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    bundle = chosen.out / f"ballast-bundle-{version}"
    shutil.rmtree(bundle, ignore_errors=True)
    wheels = bundle / "wheels"
    wheels.mkdir(parents=True)
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(ROOT)])
    (own,) = wheels.glob("ballast_diagnosis-*.whl")
    sets = {name: extra for name, extra in SETS.items() if chosen.only in (None, name)}
    for name, extra in sets.items():
        print(f"collecting the wheels of the {name}")
        listed = resolved(f"{own}{extra}", bundle / f"{name}.report.json", wheels)
        (bundle / f"{name}.txt").write_text(listed, encoding="utf-8")
    metadata = {path: read_metadata(path) for path in sorted(wheels.glob("*.whl"))}
    materials.write_sbom(bundle / "sbom.cdx.json", own, metadata)
    materials.write_licences(bundle / "licences.txt", metadata.values())
    shutil.copy(Path(__file__).with_name("install.sh"), bundle)
    for unit in (ROOT / "infra" / "systemd").glob("*.service"):
        shutil.copy(unit, bundle)
    write_digests(bundle)
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    print(f"{bundle}: {len(metadata)} wheels, {size / 1e6:.0f} MB")
    return 0


def resolved(requirement: str, report: Path, wheels: Path) -> str:
    """Download the wheels that a requirement needs; a line for each, ``name==version --hash=sha256:...``."""
    before = {path.name for path in wheels.iterdir()}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    folder = report.with_suffix("")
    _run([*pip, "wheel", "-c", str(CONSTRAINTS), "--wheel-dir", str(folder), requirement])
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name not in before:
            shutil.copy(path, wheels)
        headers = read_metadata(path)
        lines.append(f"{headers['Name']}=={headers['Version']} --hash=sha256:{digest(wheels / path.name)}\n")
    shutil.rmtree(folder)
    return "".join(lines)


def read_metadata(wheel: Path) -> dict[str, list[str] | str]:
    """Headers of a wheel's METADATA; those that may be repeated as a list."""
    with ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each)]
        message = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    single = {key: message[key] or "" for key in ("Name", "Version", "License", "License-Expression", "Summary")}
    return {**single, "Classifier": message.get_all("Classifier") or [],
            "Requires-Dist": message.get_all("Requires-Dist") or [], "Digest": digest(wheel)}


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_digests(bundle: Path) -> None:
    """Write ``SHA256SUMS`` over all other files, as ``sha256sum --check`` reads it."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{digest(path)}  {path.relative_to(bundle)}\n" for path in files]
    (bundle / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())

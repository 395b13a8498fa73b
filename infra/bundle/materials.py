"""What a bundle is made of: a bill of materials in CycloneDX, and the licence of every part.

A licence is taken from a part's own metadata: ``License-Expression``, else the classifiers, else the field ``License``
where it is a name and not a text. What says none, or a name that is not known here, fails: somebody must look.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Headers = Mapping[str, Any]

ALLOWED = frozenset({
    "0BSD", "Apache-2.0", "Artistic-1.0-Perl", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "HPND",
    "ISC", "LGPL", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "ZPL-2.1", "Zlib",
    "LGPL-3.0-only", "LGPL-3.0-or-later",
    "LGPL-2.1-or-later", "CNRI-Python", "GPL-3.0-or-later WITH GCC-exception-3.1",
})
"""Licences under which a part may be handed on beside Ballast. LGPL: used as a library that can be replaced."""

SAME = {
    "apache 2.0": "Apache-2.0", "apache-2": "Apache-2.0", "apache license 2.0": "Apache-2.0", "apache 2": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0", "apache software license": "Apache-2.0", "apache": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0", "apache license": "Apache-2.0",
    "bsd license": "BSD", "bsd 3-clause": "BSD-3-Clause", "bsd-3": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause", "new bsd": "BSD-3-Clause", "modified bsd": "BSD-3-Clause", "bsd": "BSD",
    "mit license": "MIT", "the mit license (mit)": "MIT", "mit": "MIT", "isc license (iscl)": "ISC",
    "isc license": "ISC",
    "python software foundation license": "PSF-2.0", "psf": "PSF-2.0", "psf license": "PSF-2.0", "psfl": "PSF-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0", "mpl 2.0": "MPL-2.0", "mpl-2.0": "MPL-2.0",
    "the unlicense (unlicense)": "Unlicense", "zlib/libpng license": "Zlib",
    "historical permission notice and disclaimer (hpnd)": "HPND", "zope public license": "ZPL-2.1",
    "gnu lesser general public license v3 (lgplv3)": "LGPL-3.0-only", "lgplv3+": "LGPL-3.0-or-later",
    "gnu library or lesser general public license (lgpl)": "LGPL",
    "gnu lesser general public license v3 or later (lgplv3+)": "LGPL-3.0-or-later",
}
KNOWN = {
    "amplitude-analytics": "MIT", "huey": "MIT", "skops": "MIT",
    "text-unidecode": "Artistic-1.0-Perl OR GPL-2.0-or-later",
}
"""Parts whose metadata name no licence, or both of a choice; from the licence that they carry, read by hand."""


def licence(headers: Headers) -> str:
    """Licence of a part as an SPDX expression, or what its metadata say; empty where they say nothing."""
    if str(headers["Name"]).lower() in KNOWN:
        return KNOWN[str(headers["Name"]).lower()]
    if headers.get("License-Expression"):
        return str(headers["License-Expression"])
    classified = [each.rpartition(" :: ")[2] for each in headers["Classifier"] if each.startswith("License :: ")]
    found = [_name(each) for each in classified if each != "OSI Approved"]
    text = str(headers.get("License") or "").strip()
    if text and "\n" not in text and len(text) < 80:
        named = _name(text)
        if not found or (named in ALLOWED and set(found) <= {"BSD"}):
            found = [named]
    return " AND ".join(dict.fromkeys(found))


def is_allowed(expression: str) -> bool:
    """Whether all that must be kept to at once is allowed; of a choice (``OR``) one is enough."""
    text = expression.replace("(", " ").replace(")", " ")
    needed = [part for part in re.split(r"\s+AND\s+", text) if part.strip()]
    return bool(needed) and all(
        any(_name(each) in ALLOWED for each in re.split(r"\s+OR\s+", part.strip())) for part in needed
    )


def write_licences(path: Path, parts: Iterable[Headers]) -> None:
    """Write a line for each part: name, version, licence; ``SystemExit`` names the parts that are not allowed."""
    listed = sorted((str(each["Name"]).lower(), str(each["Version"]), licence(each)) for each in parts)
    refused = [f"{name} {version}: {said or 'none named'}" for name, version, said in listed if not is_allowed(said)]
    if refused:
        raise SystemExit("licences that are not in the list of allowed ones:\n" + "\n".join(refused))
    path.write_text("".join(f"{name} {version}: {said}\n" for name, version, said in listed), encoding="utf-8")


def write_sbom(path: Path, own: Path, parts: Mapping[Path, Headers]) -> None:
    """Write the bill of materials: every wheel with its digest and licence, and what needs what."""
    references = {_key(each["Name"]): _purl(each) for each in parts.values()}
    components = [_component(each) for wheel, each in parts.items() if wheel != own]
    needs = [
        {"ref": _purl(each), "dependsOn": sorted({
            references[name] for name in (_key(re.split(r"[\s;\[<>=!~(]", need)[0]) for need in each["Requires-Dist"])
            if name in references and references[name] != _purl(each)
        })}
        for each in parts.values()
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, "".join(each["Digest"] for each in parts.values()))
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": {"component": {**_component(parts[own]), "type": "application"}},
        "components": components, "dependencies": needs,
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _component(headers: Headers) -> dict[str, Any]:
    return {
        "type": "library", "bom-ref": _purl(headers), "name": headers["Name"], "version": headers["Version"],
        "purl": _purl(headers), "hashes": [{"alg": "SHA-256", "content": headers["Digest"]}],
        "licenses": [{"license": {"name": licence(headers) or "unknown"}}],
    }


def _purl(headers: Headers) -> str:
    return f"pkg:pypi/{_key(headers['Name'])}@{headers['Version']}"


def _key(name: Any) -> str:
    return re.sub(r"[-_.]+", "-", str(name)).lower()


def _name(text: str) -> str:
    return SAME.get(text.strip().lower(), text.strip())

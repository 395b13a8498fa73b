"""Licences of what Ballast needs to run, as it is installed here: ``python infra/bundle/installed.py``."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import materials  # noqa: E402  (beside this file, which is no package)

EXTRAS = ("", "websocket", "server", "embedded")


def needed(root: str = "ballast-diagnosis") -> dict[str, dict[str, Any]]:
    """Headers of every distribution that the plant's and the server's side need, by name; extras are followed too."""
    from packaging.requirements import Requirement

    found: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(root, extra) for extra in EXTRAS]
    while waiting:
        name, extra = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or Python
        headers = installed.metadata
        found[key] = {**{each: headers[each] for each in ("Name", "Version", "License", "License-Expression")
                         if each in headers}, "Classifier": headers.get_all("Classifier") or []}
        for text in installed.requires or []:
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(need.name, each) for each in ("", *need.extras)]
    return found


def main() -> int:
    """Print name, version and licence of each; 1 where one is not allowed."""
    bad = 0
    for name, headers in sorted(needed().items()):
        said = materials.licence(headers)
        allowed = materials.is_allowed(said)
        bad += not allowed
        print(f"{name} {headers['Version']}: {said or 'none named'}{'' if allowed else '   <- not allowed'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

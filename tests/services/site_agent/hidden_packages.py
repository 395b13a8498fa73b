"""A process without SciPy, CVXPY and what else a plant does not have, whatever is installed.

``python -m tests.services.site_agent.hidden_packages pytest ARGUMENTS`` runs tests in it; ``.. answer FOLDER`` answers
the tasks that :mod:`tests.services.site_agent.test_without_scipy` wrote into the folder.
"""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path

HIDDEN = ("scipy", "cvxpy", "clarabel", "sklearn", "daqp", "mlflow", "prefect", "sqlalchemy")


class Hidden(importlib.abc.MetaPathFinder):
    """Says of the hidden packages that there are none."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def answer(folder: Path) -> None:
    """Answers of a door to the frames in ``tasks``, in their order, into ``answers``."""
    from models.solvers import factored
    from services.contracts.keys.signing import public_key, signer
    from services.contracts.machines.asset_type import AssetType
    from services.site_agent.rules.policy import SitePolicy
    from services.site_agent.settings import CsvSource
    from tests.services.site_agent.conftest import Site

    assert factored.lapack() is None, "SciPy was found"
    asset_type, seed = AssetType.from_toml(folder / "asset_type.toml"), folder / "site.nk"
    policy = SitePolicy.model_validate_json((folder / "policy.json").read_bytes())
    source = CsvSource(kind="csv", path=folder / "data.csv")
    site = Site(folder, asset_type, policy, source, signer(seed), public_key(seed))
    for frame in sorted((folder / "tasks").iterdir()):
        (folder / "answers" / frame.name).write_bytes(site.door.answer(frame.read_bytes()))
    site.ledger.close()


def main() -> int:
    assert not set(HIDDEN) & set(sys.modules), "they were imported before they were hidden"
    sys.meta_path.insert(0, Hidden())
    if sys.argv[1] == "pytest":
        import pytest

        return int(pytest.main(sys.argv[2:]))
    for folder in sys.argv[2:]:
        answer(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

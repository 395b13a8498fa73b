"""A small site: an asset type of three features, a CSV file made by the test, a founded folder."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from models.methods.row_account import RowAccount
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import Signer, encode
from services.contracts.wire.messages import Kind, SiteRefusal, SiteUpdate, Task
from services.site_agent.cli import main
from services.site_agent.door.local_round import LocalRound
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource
from services.site_agent.vault import reader
from tests.services.site_agent.party import METHOD, Party
from tests.services.site_agent.proxy import HOST, Proxy

RUN = "a" * 32
TWO_CLASSES = """name = "pump"
[[features]]
name = "flow"
unit = "L/min"
low = 0.0
high = 100.0
[[features]]
name = "ripple"
unit = "bar"
low = -10.0
high = 10.0
out_of_range = "refuse"
[[features]]
name = "oil"
unit = "1"
low = 0.0
high = 4.0
required = false
[[fault_classes]]
name = "healthy"
severity = 0
[[fault_classes]]
name = "leak"
severity = 5
"""
THIRD_CLASS = '[[fault_classes]]\nname = "worn"\nseverity = 7\n'


@pytest.fixture(autouse=True)
def files_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes a table in parts here, so a vault need not wait until nobody does."""
    monkeypatch.setattr(reader, "QUIET", 0.0)


@pytest.fixture
def asset_type_file(tmp_path: Path) -> Path:
    path = tmp_path / "asset_type.toml"
    path.write_text(TWO_CLASSES)
    return path


@pytest.fixture
def asset_type(asset_type_file: Path) -> AssetType:
    return AssetType.from_toml(asset_type_file)


@pytest.fixture
def three_classes(tmp_path: Path) -> AssetType:
    path = tmp_path / "three.toml"
    path.write_text(TWO_CLASSES + THIRD_CLASS)
    return AssetType.from_toml(path)


def table(n_rows: int, classes: tuple[str, ...] = ("healthy", "leak"), seed: int = 0) -> list[list[Any]]:
    """Header and rows; class k has its own place in the plane, so that it can be learned."""
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = [["flow", "ripple", "oil", "label"]]
    for row in range(n_rows):
        number = row % len(classes)
        flow, ripple = 50 + 20 * number + 8 * rng.standard_normal(), 3.0 * number + rng.standard_normal()
        rows.append([round(flow, 6), round(ripple, 6), round(rng.uniform(0, 4), 6), classes[number]])
    return rows


@pytest.fixture(scope="session")
def make_table() -> Callable[..., list[list[Any]]]:
    return table


@pytest.fixture
def write_csv(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: list[list[Any]], name: str = "data.csv", delimiter: str = ",") -> Path:
        path = tmp_path / name
        path.write_text("".join(delimiter.join(str(cell) for cell in row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def home(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """A site over a CSV file, made by ``init``."""
    data = write_csv(make_table(60))
    arguments = ["--dir", str(tmp_path / "home"), "--asset-type", str(asset_type_file), "--data", str(data)]
    assert main(["init", "--site-id", "plant-1", *arguments]) == 0
    capsys.readouterr()
    return tmp_path / "home"


@pytest.fixture
def policy() -> SitePolicy:
    return SitePolicy(
        methods=("level-bundle", "fdr-admm"), asset_types=("pump",), messages=("join", "round", "evaluate"),
        reveal=("sums", "each site"),
    )


@dataclass
class Site:
    """A door with its ledger and key, over a CSV file, and a way to ask it."""

    folder: Path
    asset_type: AssetType
    policy: SitePolicy
    source: Any
    sign: Signer
    public_key: str
    ledger: Ledger = field(init=False)
    door: LocalRound = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.folder / "ledger.jsonl")
        egress = Egress(self.ledger, self.sign, self.policy.max_message_bytes)
        exposure = self.folder / "exposure.sqlite"
        masks = MaskedRuns("plant-1", self.public_key, self.sign, self.policy)
        self.door = LocalRound("plant-1", self.source, self.asset_type, self.policy, egress, exposure, masks)

    def task(self, kind: str = "join", **changes: Any) -> Task:
        known: dict[str, Any] = {
            "kind": kind, "site_id": "plant-1", "run_id": RUN, "round": 1, "method": "level-bundle",
            "asset_type": "pump", "contract": self.asset_type.fingerprint, "spec": TrainingSpec(),
        }
        return Task(**(known | changes))

    def ask(self, kind: str = "join", **changes: Any) -> SiteUpdate | SiteRefusal:
        from services.contracts.wire.codec import decode

        answer = decode(self.door.answer(encode(self.task(kind, **changes))), 1 << 20)
        assert isinstance(answer, SiteUpdate | SiteRefusal)
        return answer

    def restarted(self, **changes: Any) -> Site:
        """The site again after its agent's end, with another policy or other rows."""
        self.door.close()
        self.ledger.close()
        for name, value in changes.items():
            setattr(self, name, value)
        self.__post_init__()
        return self

    def refusal_code(self, kind: str = "join", **changes: Any) -> str:
        answer = self.ask(kind, **changes)
        assert isinstance(answer, SiteRefusal), "the site answered where it should refuse"
        return answer.code


@pytest.fixture
def make_site(
    tmp_path: Path, asset_type: AssetType, policy: SitePolicy, write_csv: Callable[..., Path]
) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(
        rows: list[list[Any]] | None = None, *, folder: str = "site", asset_type: AssetType = asset_type,
        policy: SitePolicy = policy, **source: Any,
    ) -> Site:
        home = tmp_path / folder
        home.mkdir()
        path = write_csv(table(100) if rows is None else rows, f"{folder}/data.csv")
        seed = home / "site.nk"
        new_seed_file(seed)
        csv_source = CsvSource(kind="csv", path=path, **source)
        made.append(Site(home, asset_type, policy, csv_source, signer(seed), public_key(seed)))
        return made[-1]

    yield make
    for site in made:
        site.ledger.close()


@pytest.fixture
def accounts_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Site], list[RowAccount]]:
    """The accounts of what a site answers from now on, as its gate is given them."""

    def noting(site: Site) -> list[RowAccount]:
        accounts: list[RowAccount] = []
        honest = site.door._gate.admit

        def noted(*given: Any) -> Any:
            accounts.append(given[3])
            return honest(*given)

        monkeypatch.setattr(site.door._gate, "admit", noted)
        return accounts

    return noting


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with socket.create_server((HOST, 0)) as listener:
        made = Proxy(listener)
        threading.Thread(target=made.serve, daemon=True).start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
        made.cut()


@pytest.fixture
def new_party(make_site: Callable[..., Any], tmp_path: Path) -> Callable[..., Party]:
    def new(shares: dict[str, float] | None = None, known_as: str = "", **policy: Any) -> Party:
        rules: dict[str, Any] = {
            "methods": (METHOD,), "asset_types": ("pump",), "messages": get_args(Kind), "exposure_limit": 1.0
        }
        return Party(make_site(policy=SitePolicy(**(rules | policy))), tmp_path, shares or {}, known_as)

    return new

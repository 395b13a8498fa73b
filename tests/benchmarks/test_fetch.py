"""Downloads against a local server: what is kept, what is refused, and the checksums of the real tables."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.benchmarks.data import load_binary
from tests.benchmarks.fetch import SOURCES, Source, digest, fetch, main, meant_name
from tests.benchmarks.images import IMAGE_SETS
from tests.benchmarks.papers.drfl.tables import SCENARIOS
from tests.benchmarks.papers.fdr_svm.uci import SETS
from tests.benchmarks.published_files import FetchError
from tests.benchmarks.raw_tables import RAW_TABLES, converted, spelling
from tests.loopback import serving
from tests.tables import table_or_skip

ROWS = [["1.50", "2", "a"], ["-3e-1", "?", "b"]]
TOY = {"toy": Source(1, "10.0/none", "Class", digest(ROWS), drop=("ID",), labels={"A": "a"})}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "mirror"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: QuietHandler(*args, directory=str(folder)))
    with serving(server):
        yield folder, f"http://127.0.0.1:{server.server_port}"


def put(mirror: Path, number: int, text: str) -> None:
    (mirror / str(number)).mkdir()
    (mirror / str(number) / "data.csv").write_text(text, encoding="utf-8")


def test_writes_the_expected_table_in_one_format(mirror: tuple[Path, str], tmp_path: Path) -> None:
    put(mirror[0], 1, "ID,Big Size,w,Class\n7,1.5000,2.0,A\n8,-0.3,,b\n")
    path = fetch("toy", tmp_path / "data", base=mirror[1], sources=TOY)
    assert path.read_text() == "big_size,w,label\n1.5,2,a\n-0.3,,b\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ID,x,y,Class\n7,1.5,3,A\n8,-0.3,,b\n", "is not the expected table"),
        ("ID,x,y,Kind\n7,1.5,2,A\n", "has no column 'Class'"),
        ("ID,x,y,Class\n7,much,2,A\n", "is no number"),
        ("", "has no column 'Class'"),
    ],
)
def test_keeps_nothing_that_is_not_the_table(mirror: tuple[Path, str], tmp_path: Path, text: str, line: str) -> None:
    put(mirror[0], 1, text)
    with pytest.raises(FetchError, match=line):
        fetch("toy", tmp_path / "data", base=mirror[1], sources=TOY)
    assert not (tmp_path / "data").exists()


def test_says_where_to_get_it_by_hand(mirror: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"could not be read .*404.* by hand from https://doi.org/10.0/none"):
        fetch("toy", tmp_path, base=mirror[1], sources=TOY)
    with pytest.raises(FetchError, match="there is no table 'other'; tables are toy"):
        fetch("other", tmp_path, base=mirror[1], sources=TOY, raw={})


@pytest.mark.parametrize(("word", "name"), [
    ("heart", "statlog_heart"), ("penguins", "palmer_penguins"), ("Abalone", "abalone"), ("adult", "adult"),
    ("rice", "rice_cammeo_osmancik"), ("mnist", "mnist"), ("fashion", "fashion_mnist"),
])
def test_a_table_is_known_by_a_part_of_its_name(word: str, name: str) -> None:
    names = [*sorted({**SOURCES, **RAW_TABLES}), *IMAGE_SETS]
    assert meant_name(word, names) == name


def test_a_part_of_several_names_is_told_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["breast", "nosuch"]) == 1
    several, none = capsys.readouterr().err.splitlines()
    both = "breast_cancer_wisconsin_diagnostic, breast_cancer_wisconsin_original"
    assert several == f"there is no table 'breast'; tables are {both}"
    assert none.startswith("there is no table 'nosuch'; tables are abalone, ") and none.endswith("esol, freesolv")


def test_the_command_that_a_failed_download_names_takes_the_file_got_by_hand(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"save it as /tmp/tables/1/data.csv and run: .* toy --base file:///tmp/tables"):
        fetch("toy", tmp_path, base=f"file://{tmp_path}/nowhere", sources=TOY)
    put(tmp_path, 1, "ID,Big Size,w,Class\n7,1.5000,2.0,A\n8,-0.3,,b\n")
    assert fetch("toy", tmp_path, base=f"file://{tmp_path}", sources=TOY) == tmp_path / "toy.csv"


def original(name: str, rows: list[list[str]]) -> str:
    """The raw file that a table of ours comes from, in its publisher's own form."""
    table, lines = RAW_TABLES[name], []
    missing = "NA" if name == "palmer_penguins" else "?"
    delimiter = {"adult": ", ", "steel_plates_faults": "\t", "statlog_heart": " "}.get(name, ",")
    for number, row in enumerate(rows):
        cells = [str(number)] * (max((*table.features, table.target)) + 1)
        for place, cell in zip(table.features, row[:-1], strict=True):
            cells[place] = cell or missing
        if table.flags:
            cells += ["1" if row[-1] == flag else "0" for flag in table.flags]
        else:
            cells[table.target] = row[-1]
        lines.append(delimiter.join(cells))
    return "\n".join(["header"] * table.skip + lines) + "\n\n"


@pytest.mark.parametrize("name", sorted(RAW_TABLES))
def test_raw_files_become_the_tables_at_hand(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with table_or_skip(name).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    raw = tmp_path / RAW_TABLES[name].url.rsplit("/", 1)[1]
    raw.write_text(original(name, rows), encoding="utf-8")
    out, base = tmp_path / "data", f"file://{tmp_path}"
    assert main([name, "--out", str(out), "--base", base]) == 0
    with (out / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [header, *([spelling(cell) for cell in row] for row in rows)]
    raw.write_text(original(name, rows[1:]), encoding="utf-8")
    assert main([name, "--out", str(tmp_path / "other"), "--base", base]) == 1
    assert "is not the expected table: its SHA-256" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_raw_line_of_another_form_is_named() -> None:
    table = RAW_TABLES["steel_plates_faults"]
    with pytest.raises(ValueError, match="line 1 has 3 cells, at least 34 were expected"):
        converted("1 2 3\n", table)
    with pytest.raises(ValueError, match="line 1 belongs to 2 classes"):
        converted(" ".join(["1"] * 29 + ["0"] * 5) + "\n", table)


def test_every_table_that_an_experiment_needs_can_be_fetched() -> None:
    used = {chosen.file for chosen in SETS} | {scenario.file for scenario in SCENARIOS}
    assert used | {"adult", "palmer_penguins", "steel_plates_faults"} <= {*SOURCES, *RAW_TABLES}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_tables_at_hand_have_the_known_checksums(
    mirror: tuple[Path, str], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table, source = table_or_skip(name), SOURCES[name]
    with table.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    lines = [",".join([*header[:-1], source.target])] + [",".join(row) for row in rows]
    put(mirror[0], source.number, "\n".join(lines) + "\n")
    assert main([name, "--out", str(tmp_path / "data"), "--base", mirror[1]]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "data" / f"{name}.csv")


def test_the_loader_says_how_to_get_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="python -m tests.benchmarks.fetch sonar --out /") as found:
        load_binary("sonar", ("M",))
    words = shlex.split(str(found.value).rsplit("get it with: ", 1)[1])
    assert words == ["python", "-m", "tests.benchmarks.fetch", "sonar", "--out", str(tmp_path)]

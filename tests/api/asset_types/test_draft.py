"""An asset type drafted from a table, as an engineer would use it: printed, read back, and given to a plant."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.asset_types.draft import DraftedType, draft_asset_type
from api.asset_types.table import Layout
from api.cli.main import main
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault


@pytest.fixture
def table(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    temperature, pressure = draw.uniform(20.3, 29.6, 80), draw.uniform(3.0, 4.0, 80)
    pressure[7] = 350.0
    lines = ["Temp [degC],pressure (bar),serial,speed,label"]
    for row in range(80):
        word = "OK" if row % 4 else "worn seal"
        lines.append(f"{temperature[row]:.3f},{pressure[row]:.3f},a{row},{1000 + row},{word}")
    path = tmp_path / "bench.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return path


def drafted(path: Path, **layout: Any) -> DraftedType:
    return draft_asset_type("pump", path, Layout(**layout))


HOSTILE = 'flow ""x""\n[[fault_classes]]\nname = ""evil""\nseverity = 1\x1b[2J\u009b'


def test_a_header_is_quoted_and_writes_no_line_of_the_asset_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, opened = tmp_path / "bench.csv", tmp_path / "pump.toml"
    words = ["le\u202eak", "OK", "OK", "OK"]
    rows = [f"{20 + row % 7}.5,{3 + row % 5}.25,text {row},{words[row % 4]}" for row in range(80)]
    path.write_text("\n".join([f'"{HOSTILE}",speed,"{HOSTILE} too",label', *rows]) + "\n", encoding="utf-8")
    assert main(["asset-type", "draft", str(path), "--name", "pump"]) == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines())
    opened.write_text(said, encoding="utf-8")
    found = AssetType.from_toml(opened)
    assert found.class_names == ("ok", "le_ak") and len(found.features) == 2
    (remark,) = [line for line in drafted(path).remarks if "under [data.columns]" in line]
    setting = remark.partition("its site.toml says ")[2].partition(" under ")[0]
    assert tomllib.loads(setting) == {found.feature_names[0]: HOSTILE.replace('""', '"')}


def test_a_table_is_read_as_the_flags_say(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--delimiter", ";", "--decimal", ",", "--label", "state", "--without", "run"]
    rows = [f"{20 + row % 7},5;{row};{'OK' if row % 3 else 'worn'}" for row in range(80)]
    table.write_text("\n".join(["flow;run;state", *rows]) + "\n", encoding="utf-8")
    assert main(["asset-type", "draft", str(table), "--name", "pump", *words, "--json"]) == 0
    found = AssetType.model_validate(json.loads(capsys.readouterr().out)["asset_type"])
    assert found.feature_names == ("flow",) and found.class_names == ("ok", "worn")
    assert main(["asset-type", "draft", str(table), "--name", "pump", *words[:2], *words[4:]]) == 1


def test_what_is_printed_is_an_asset_type_that_opens_the_table_at_a_plant(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["asset-type", "draft", str(table), "--name", "pump"]) == 0
    file = table.with_suffix(".toml")
    file.write_text(capsys.readouterr().out)
    asset_type = AssetType.from_toml(file)
    assert asset_type == drafted(table).asset_type
    assert [(each.name, each.unit) for each in asset_type.features] == [
        ("temp", "degC"), ("pressure", "bar"), ("speed", "1"),
    ]
    assert [(each.name, each.severity) for each in asset_type.fault_classes] == [("ok", 0), ("worn_seal", 1)]
    source = CsvSource(
        kind="csv", path=table, columns={"temp": "Temp [degC]", "pressure": "pressure (bar)"},
        labels={"OK": "ok", "worn seal": "worn_seal"},
    )
    dataset = Vault(source, asset_type).current()
    assert len(dataset.train) + len(dataset.test) == 80


def test_remarks_say_what_to_write_and_what_was_left_out(table: Path) -> None:
    remarks = "\n".join(drafted(table).remarks)
    assert 'temp = "Temp [degC]" under [data.columns]' in remarks
    for line in ('"worn seal" = "worn_seal"', '"OK" = "ok"'):
        assert f"{line} under [data.labels]" in remarks
    assert "serial: not all of its cells are numbers" in remarks
    assert "pressure: 1 of 80 readings are far from all others" in remarks and "the farthest 350" in remarks
    assert "ok is taken for the healthy class" in remarks and "empty" not in remarks
    table.write_text(table.read_text().replace("a9,1009,", "a9,,"))
    said = "speed: 1 of 80 cells are empty; a plant refuses a table with such cells, so leave out these rows there"
    assert said in "\n".join(drafted(table).remarks)


def test_ranges_hold_every_reading_but_the_mistake_and_little_more(table: Path) -> None:
    temperature, pressure, speed = drafted(table).asset_type.features
    assert (speed.low, speed.high) == (1000.0, 1079.0)
    readings = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=(0, 1))
    readings[7, 1] = readings[6, 1]
    for feature, own in zip((temperature, pressure), readings.T, strict=True):
        least, most, step = own.min(), own.max(), 0.01 * np.ptp(own)
        assert least - step <= feature.low <= least and most <= feature.high <= most + step


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (-1234.5, 987.6), (1e-7, 3e-7), (5e9, 5.5e9), (99.0, 100.0)])
def test_ends_are_rounded_outwards_on_every_scale(low: float, high: float, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"s,label\n{low!r},a\n{(low + high) / 2!r},a\n{high!r},b\n")
    (feature,) = drafted(path).asset_type.features
    step = 0.01 * (high - low)
    assert low - step <= feature.low <= low and high <= feature.high <= high + step


@pytest.mark.parametrize(("reading", "said"), [
    ("inf", "wear: its range needs finite low < high, got 0.0, inf"),
    ("-1.7e308", "wear: its range is too wide for a float64, got -1.7e+308, 1.7e+308"),
])
def test_a_target_without_end_is_refused(reading: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    most = "1.7e308" if reading != "inf" else "1"
    path.write_text("heat,wear\n" + "".join(f"{n},{each}\n" for n, each in enumerate(["0", reading, most] * 9)))
    with pytest.raises(InvalidInputError) as refused:
        drafted(path, label=None, target="wear")
    assert str(refused.value) == f"asset type pump from wide.csv: {said}"


@pytest.mark.parametrize(("reading", "ends"), [
    (5.0, (5.0, 6.0)), (-1e20, (-1e20, 0.0)), (1e300, (1e300, 2e300)), (5e-324, (0.0, 1.0)),
])
def test_a_reading_that_is_the_same_in_every_row_has_a_range(
    reading: float, ends: tuple[float, float], tmp_path: Path
) -> None:
    """1 more is lost in a large one."""
    path = tmp_path / "same.csv"
    path.write_text("heat,label\n" + "".join(f"{reading!r},{'ab'[n % 2]}\n" for n in range(20)))
    (heat,) = drafted(path).asset_type.features
    assert (heat.low, heat.high) == pytest.approx(ends, rel=0.02) and heat.low <= reading <= heat.high
    path.write_text("heat,label\n" + "".join(f"{n % 3 * 5e-324!r},{'ab'[n % 2]}\n" for n in range(60)))
    (heat,) = drafted(path).asset_type.features
    assert (heat.low, heat.high) == (0.0, 1e-323), "no step of ten is so small"


def test_a_sensor_over_decades_is_scaled_by_logarithms_and_its_mistyped_readings_are_not_its_ends(
    tmp_path: Path
) -> None:
    draw = np.random.default_rng(3)
    particles = np.round(np.exp(1.5 * draw.normal(size=120)) / 7.0, 5)
    cells = np.column_stack([particles, draw.uniform(0.0, 9.0, 120)])
    cells[3, 0] = 1e9
    path = tmp_path / "t.csv"
    lines = [f"{oil!r},{flow!r},{'a' if flow < 5 else 'b'},{flow!r}" for oil, flow in cells.tolist()]
    path.write_text("\n".join(["oil,flow,label,life", *lines]) + "\n")
    made = drafted(path, target="life")
    oil, flow = made.asset_type.features
    assert (oil.scale, flow.scale) == ("log", "linear")
    own = np.delete(particles, 3)
    assert 0.99 * own.min() <= oil.low <= own.min() and own.max() <= oil.high <= 1.01 * own.max()
    assert any('oil: its readings spread over decades, so' in line and '"log"' in line for line in made.remarks)
    plain = drafted(path, without=("life",))
    assert {each.scale for each in plain.asset_type.features} == {"linear"}, "classes gain nothing by it"
    assert any("oil: its readings spread over decades;" in line for line in plain.remarks)


def test_a_target_is_drafted_with_decimal_commas_and_columns_left_out(tmp_path: Path) -> None:
    path = tmp_path / "wear.csv"
    path.write_text("hour;s1;life [h]\n1;0,25;10,5\n2;0,75;99\n")
    made = drafted(path, delimiter=";", decimal=",", label=None, target="life [h]", without=("hour",)).asset_type
    assert made.fault_classes == () and [each.name for each in made.features] == ["s1"]
    assert made.target is not None
    assert (made.target.name, made.target.unit, made.target.low, made.target.high) == ("life", "h", 10.5, 99.0)


def test_a_column_is_named_without_its_unit_as_the_draft_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "bench.csv"
    path.write_text("temp [degC],Opening [mm^2],Hours run [h]\n20,0.5,1\n25,1.5,2\n")
    assert [each.name for each in drafted(path, label=None, target="temp").asset_type.features] == [
        "opening", "hours_run"
    ]
    made = drafted(path, label=None, target="opening", without=("hours_run",))
    assert made.asset_type.target is not None and made.asset_type.feature_names == ("temp",)
    assert (made.asset_type.target.name, made.asset_type.target.unit) == ("opening", "mm^2")
    source = CsvSource(kind="csv", path=path, target_column="Opening [mm^2]")
    assert 'site.toml says target_column = "Opening [mm^2]" under [data]' in "\n".join(made.remarks)
    assert len(Vault(source, made.asset_type).current().train) == 2
    path.write_text("s,t [a],t [b]\n1,2,3\n2,3,4\n")
    with pytest.raises(InvalidInputError, match=r"has 2 columns 't': say which of t \[a\], t \[b\]"):
        drafted(path, label=None, target="t")


def test_nothing_is_to_be_written_for_headers_that_plants_may_have_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "bench.csv"
    path.write_text("temp [degC],flow,opening [mm^2]\n20,1,0.5\n25,2,1.5\n")
    made = drafted(path, label=None, target="opening")
    assert made.remarks == ()
    assert len(Vault(CsvSource(kind="csv", path=path), made.asset_type).current().train) == 2


def test_words_that_are_numbers_become_classes_and_nought_is_healthy(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,label\n1,2\n2,2\n3,0\n4,1\n")
    classes = drafted(path).asset_type.fault_classes
    assert [(each.name, each.severity) for each in classes] == [("class_0", 0), ("class_1", 1), ("class_2", 1)]


@pytest.mark.parametrize(
    ("text", "layout", "said"),
    [
        ("s,label\n1,a\n2,b\n", {"label": "state"}, "no column 'state'; it has s, label: say by --label"),
        ("s,label\n1,a\n2,a\n", {}, "1 different words"),
        ("s,label\nx,a\ny,b\n", {}, "no column of numbers"),
        ("s,label\n1,a\n2\n", {}, "row 2: 1 cells, the header has 2; are cells divided by ','. Else say --delimiter"),
        ("s;label\n1;a\n", {"label": None, "target": "s;label"}, "no column of numbers"),
        ("s;label\n1;a\n2;b\n", {}, "divided by ';', not by ',': say so by --delimiter ';'$"),
        ("s\tlabel\n1\ta\n2\tb\n", {}, r"not by ',': say so by --delimiter \$'\\t'$"),
        ("s\tu,label\n1\t2,a\n", {"delimiter": "|"}, "divided by '.t', not by"),
        ("s,s,label\n1,2,a\n", {}, "two columns called 's'"),
        ("", {}, "needs a header line and rows"),
        ("s,life\n1,3\n2,3\n", {"label": None, "target": "life"}, "reads 3 in every row"),
        ("s,life\n1,3\n2,x\n", {"label": None, "target": "life"}, "holds what is no number"),
        ("s,label\n1,a\n", {"delimiter": ";;"}, "one character other than the decimal mark"),
        ("a b,a_b,label\n1,2,x\n2,3,y\n", {}, "^t.csv: 'a b' and 'a_b' would both be called a_b; rename one"),
        ("s [bar],S [mm],label\n1,2,x\n2,3,y\n", {}, r"'s \[bar\]' and 'S \[mm\]' would both be called s;"),
        ("s,label\n1,OK\n2,ok\n3,leak\n", {}, "column: 'OK' and 'ok' would both be called ok; write the words"),
        ("s;label\n1,5;a\n2,5;b\n", {"delimiter": ";"}, "a feature: s: .* holds '1,5'; with --decimal , they were"),
    ],
)
def test_what_is_no_such_table_is_said(text: str, layout: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        drafted(path, **layout)


def test_what_a_plant_would_not_read_as_a_number_is_none_here(tmp_path: Path) -> None:
    """A point beside decimal commas divides thousands, and underscores are source code's."""
    path = tmp_path / "t.csv"
    path.write_text("s;t;u;label\n1.234;1_0;1,5;a\n2.345;2_0;2,5;b\n")
    made = drafted(path, delimiter=";", decimal=",")
    assert made.asset_type.feature_names == ("u",)
    assert [line.partition(" (")[2] for line in made.remarks[:2]] == [
        "row 1 holds '1.234'; with --decimal . they were), so it is no feature",
        "row 1 holds '1_0'), so it is no feature",
    ]


@pytest.mark.parametrize(("cells", "said"), [
    ([f"{row % 7:03d}" for row in range(40)], "'000' looks like the name of a machine or the code of a state"),
    ([str(1_767_225_600 + 60 * row) for row in range(40)], "it grows from each row to the next, as a time or a"),
    ([str(row % 7) for row in range(40)], ""), ([f"0.{row % 7}" for row in range(40)], ""),
    (["0"] * 40, ""), ([str(row) for row in range(9)], ""), ([str(row) for row in range(10)], "it grows"),
    (["5", *map(str, range(10))], ""),
])
def test_numbers_that_no_sensor_reads_are_told(cells: list[str], said: str, tmp_path: Path) -> None:
    """A model that goes by machines and times knows nothing of the next machine and the next day."""
    lines = [f"{cell},{row % 5},{'ok' if row % 2 else 'leak'}" for row, cell in enumerate(cells)]
    path = tmp_path / "bench.csv"
    path.write_text("\n".join(["run no,flow,label", *lines]))
    told = [line for line in drafted(path).remarks if "--without" in line]
    assert [line.startswith(f"run no: {said}") for line in told] == [True] * bool(said)
    assert all(line.endswith("; if it is no sensor, leave it out by --without 'run no'") for line in told)


def test_an_infinite_reading_is_no_end_of_a_range_and_told_as_what_a_plant_refuses(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,label\n" + "".join(f"{'-inf' if n == 5 else n},{'ab'[n % 2]}\n" for n in range(60)))
    made = drafted(path)
    (sensor,) = made.asset_type.features
    assert (sensor.low, sensor.high) == (0.0, 59.0)
    assert made.remarks[0].startswith("s: 1 of 60 cells are infinite; a plant refuses a table with such cells")
    assert not any("far from all others" in line or "empty" in line for line in made.remarks)


def test_rows_without_a_class_are_told_where_a_plant_refuses_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,life,label\n1,3,a\n2,4,\n3,5,b\n")
    made = drafted(path, without=("life",))
    said = "label: 1 of 3 cells are empty; a plant refuses a table with such cells, so leave out these rows there"
    assert said in made.remarks
    with pytest.raises(VaultError, match="line 3: the cell of the class is empty; leave out the row or say its class"):
        Vault(CsvSource(kind="csv", path=path), made.asset_type).current()
    both = drafted(path, target="life")
    assert said not in both.remarks
    assert len(Vault(CsvSource(kind="csv", path=path), both.asset_type).current().train) > 0


@pytest.mark.parametrize(("label", "count", "where"), [(None, 2, ""), ("label", 1, " in rows without a class")])
def test_rows_without_a_target_are_told_where_a_plant_refuses_them(
    label: str | None, count: int, where: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,life,label\n1,3,a\n2,,b\n3,,\n4,7,\n")
    made = drafted(path, label=label, target="life", without=() if label else ("label",))
    said = f"life: {count} of 4 cells are empty{where}; a plant refuses a table with such rows, so leave them out there"
    assert [line for line in made.remarks if line.startswith("life: ")] == [said]
    with pytest.raises(VaultError, match="the row has neither a class nor a value of the target"):
        Vault(CsvSource(kind="csv", path=path), made.asset_type).current()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("reading", ["inf", "1.7e308"])
def test_readings_whose_difference_is_no_number_are_drafted_without_a_warning(reading: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{reading if n == 5 else f'-{reading}' if n in (6, 7) else n},{'ab'[n % 2]}" for n in range(60)]
    path.write_text("\n".join(["s,label", *lines]))
    assert drafted(path).asset_type.feature_names == ("s",)


def test_columns_without_a_header_are_no_features(tmp_path: Path) -> None:
    """As a table's index is written by pandas."""
    path = tmp_path / "t.csv"
    path.write_text(",s,,label\n0,1,7,a\n1,2,8,b\n")
    made = drafted(path)
    assert made.asset_type.feature_names == ("s",) and made.remarks[0] == "a column without a header is no feature"


def test_accents_are_left_out_of_names_and_their_letters_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Öldruck,Débit,label\n1,2,größer\n2,3,ok\n", encoding="utf-8")
    made = drafted(path).asset_type
    assert made.feature_names == ("oldruck", "debit") and made.class_names == ("ok", "grosser")


def test_letters_of_a_character_that_is_a_whole_unit_stay_in_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("oil \u2103,noise \u33c8,pump \u2116 2,label\n1,2,3,bad\n2,3,1,ok\n", encoding="utf-8")
    assert drafted(path).asset_type.feature_names == ("oil_c", "noise_db", "pump_no_2")


@pytest.mark.parametrize("first", [-320, -308, -301, -300, -299])
def test_readings_next_to_nothing_have_a_range_by_their_logarithms(first: int, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"1.5e{first + 3 * row},{row}\n" for row in range(40)))
    feature = drafted(path, label=None, target="y").asset_type.features[0]
    assert feature.scale == "log" and feature.low <= float(f"1.5e{first}") <= feature.low * 1.02


def test_the_command_refuses_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asset-type", "draft", str(tmp_path / "none.csv"), "--name", "pump"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "cannot be read" in captured.err and captured.err.count("\n") == 1


def test_the_farthest_reading_is_the_one_farthest_from_the_middle_of_the_range(tmp_path: Path) -> None:
    """Mistakes on both sides, around readings far from 0."""
    readings = [*np.linspace(10.0, 16.0, 100).tolist(), -60.0, 80.0]
    path = tmp_path / "t.csv"
    path.write_text("s,label\n" + "".join(f"{each},{'ab'[row % 2]}\n" for row, each in enumerate(readings)))
    remarks = "\n".join(drafted(path).remarks)
    assert "s: 2 of 102 readings are far from all others" in remarks and "the farthest -60:" in remarks


def test_long_tails_are_cut_where_classes_alone_are_told_apart_and_mistakes_are_told_by_themselves(
    tmp_path: Path
) -> None:
    readings = np.array([*np.linspace(0.0, 1.0, 1000), 3.0, -3.5, 80.0])
    path = tmp_path / "t.csv"
    lines = "".join(f"{each!r},{'ab'[row % 2]},{row}\n" for row, each in enumerate(readings.tolist()))
    path.write_text("s,label,life\n" + lines)
    first, last = np.quantile(readings, [0.05, 0.95])
    made = drafted(path, without=("life",))
    (sensor,) = made.asset_type.features
    assert sensor.low == pytest.approx(2.0 * first - last, abs=0.04)
    assert sensor.high == pytest.approx(2.0 * last - first, abs=0.04)
    remarks = "\n".join(made.remarks)
    assert "s: 1 of 1003 readings are far from all others and likely mistakes, the farthest 80:" in remarks
    assert "s: 2 of 1003 readings are in its long tails, which end at -3.5 and 3:" in remarks
    whole = drafted(path, target="life")
    (sensor,) = whole.asset_type.features
    assert (sensor.low, sensor.high) == (-3.5, 3.0), "a target goes on with what is far out"
    assert "long tails" not in "\n".join(whole.remarks)


@pytest.mark.parametrize(("count", "is_table"), [(2, True), (20, True), (21, False), (1, False)])
def test_two_to_twenty_words_are_classes(tmp_path: Path, count: int, is_table: bool) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s,label\n" + "".join(f"{row},w{row % count}\n" for row in range(60)))
    if is_table:
        assert len(drafted(path).asset_type.fault_classes) == count
        return
    said = f"has {count} different words; a draft takes two to 20 .* may have, are written"
    with pytest.raises(InvalidInputError, match=said):
        drafted(path)

"""Files that hold no contract: one line that says what is wrong and never what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.reading import explain, on_one_line, read_contract

SECRET = "hunter-2-is-private"


@pytest.mark.parametrize("end", ["toml", "json"])
def test_a_file_that_is_not_there_or_none(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"plan.{end}"
    for prepare, said in (
        (lambda: None, f"no plan file at {path}"), (lambda: path.mkdir(), f"the plan file {path} cannot be read: "),
    ):
        prepare()
        with pytest.raises(InvalidInputError, match=said):
            read_contract(Plan, path, "plan")


@pytest.mark.parametrize(("name", "content", "said"), [
    ("plan.toml", b"name = \xff", "is not UTF-8 text"), ("plan.toml", b"name =", "is not TOML"),
    ("plan.toml", "name = 1".encode("utf-16"), "is not UTF-8 text"),
    ("plan.toml", b"a = " + b"[" * 9999, "is not TOML: its values lie too deep"),
    ("plan.json", b"{", "Invalid JSON"), ("plan.toml", b'name = "x"', "asset_type: Field required"),
])
def test_what_is_written_otherwise_is_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError, match=said) as refused:
        read_contract(Plan, tmp_path / name, "plan")
    assert "\n" not in str(refused.value) and str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(("name", "text"), [
    ("plan.toml", 'name = "leak"\nasset_type = "pump"\n'), ("plan.json", '{"name": "leak", "asset_type": "pump"}'),
])
def test_the_mark_that_some_editors_write_in_front_is_passed_over(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert read_contract(Plan, tmp_path / name, "plan").name == "leak"


@pytest.mark.parametrize(("sensor", "fault", "said"), [
    ("Heat", "worn", "features.0.name: a name has 1 to 63 lower-case letters, digits and underscores, a letter first"),
    ("heat-1", "worn", "features.0.name: a name has 1 to 63 lower-case letters, digits and underscores, a letter "
     "first"),
    ("heat", "7th", "fault_classes.1.name: a name has 1 to 63 lower-case letters, digits, underscores, dashes and plus "
     "signs, a letter first"),
])
def test_names_that_do_not_fit_are_told_in_words_and_once(sensor: str, fault: str, said: str, tmp_path: Path) -> None:
    """Not as a pattern, and not as a list that is empty besides."""
    (tmp_path / "pump.toml").write_text(
        f'name = "pump"\n[[features]]\nname = "{sensor}"\nunit = "K"\nlow = 0.0\nhigh = 1.0\n'
        f'[[fault_classes]]\nname = "ok"\nseverity = 0\n[[fault_classes]]\nname = "{fault}"\nseverity = 1\n'
    )
    with pytest.raises(InvalidInputError) as refused:
        read_contract(AssetType, tmp_path / "pump.toml", "asset type")
    assert str(refused.value) == f"{tmp_path / 'pump.toml'}: {said}"


def test_a_list_that_is_too_short_is_said(tmp_path: Path) -> None:
    (tmp_path / "pump.toml").write_text('name = "pump"\nfeatures = []\n')
    with pytest.raises(InvalidInputError, match="features: Input should have at least 1 item, not 0"):
        read_contract(AssetType, tmp_path / "pump.toml", "asset type")


def test_a_list_that_is_too_long_is_said_without_the_name_of_a_type() -> None:
    lift = {"kind": "products", "features": list(range(300))}
    with pytest.raises(ValidationError) as refused:
        Plan.model_validate({"name": "nightly", "asset_type": "pump", "spec": {"lift": lift}})
    assert explain(refused.value, Plan).endswith("features: Input should have at most 256 items, not 300")


@pytest.mark.parametrize("changes", [
    {"gap": SECRET}, {"asset_type": SECRET + "!"}, {"sites": [SECRET + " "]}, {"reveal": SECRET}, {"auditor": SECRET},
    {"spec": {"lift": {"kind": SECRET}}}, {"spec": {"loss": SECRET + "x"}}, {"waiting": {"enough": SECRET}},
])
def test_no_value_stands_in_what_is_said(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        Plan.model_validate({"name": "nightly", "asset_type": "pump"} | changes)
    assert SECRET not in explain(refused.value, Plan)


def test_five_findings_are_told_and_no_more() -> None:
    assert on_one_line(list("abcde")) == "a; b; c; d; e"
    assert on_one_line(list("abcdef")) == "a; b; c; d; e; and 1 more"
    assert on_one_line([]) == ""

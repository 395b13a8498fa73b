"""A new site's folder: whole or not at all, and nothing that is there is touched."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from services.contracts.errors import ConflictError, InvalidInputError
from services.site_agent.settings import SiteSettings
from services.site_agent.setup import site_setup
from services.site_agent.setup.site_setup import SEED, SiteSetup, create_site
from tests.services.site_agent.conftest import TWO_CLASSES


def test_a_folder_that_cannot_be_finished_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site_setup, "new_seed_file", full)
    (tmp_path / "notes.txt").write_text("of the plant")
    with pytest.raises(InvalidInputError, match="cannot write to .*: No space left on device"):
        create_site(SiteSetup("plant-1", tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["site.toml", "policy.toml", SEED])
def test_a_file_that_is_there_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of the plant")
    with pytest.raises(ConflictError, match=f"{name} exists already; nothing is overwritten"):
        create_site(SiteSetup("plant-1", tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "of the plant"}


def test_files_that_only_an_answer_will_bring_are_looked_for_before_it_is_asked_for(tmp_path: Path) -> None:
    """The code holds once: found afterwards, such a file would have spent it."""
    setup = SiteSetup("plant-1", tmp_path)
    site_setup.check_setup(setup, "ca.pem")
    (tmp_path / "ca.pem").write_text("of the plant")
    with pytest.raises(ConflictError, match="ca.pem exists already; nothing is overwritten"):
        site_setup.check_setup(setup, "ca.pem")


def test_a_file_that_comes_meanwhile_is_left_alone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = site_setup.check_setup

    def looked(setup: SiteSetup) -> dict[str, str]:
        texts = looks(setup)
        (tmp_path / "policy.toml").write_text("of the plant")
        return texts

    monkeypatch.setattr(site_setup, "check_setup", looked)
    with pytest.raises(InvalidInputError, match="cannot write to"):
        create_site(SiteSetup("plant-1", tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"policy.toml": "of the plant"}


@pytest.mark.parametrize(("servers", "by_proxy"), [
    (("wss://a:1",), True), (("wss://a:1", "wss://b:1"), True), (("tls://a:1",), False),
])
def test_a_proxy_is_named_where_the_servers_can_be_reached_through_it(
    tmp_path: Path, servers: tuple[str, ...], by_proxy: bool
) -> None:
    create_site(SiteSetup("plant-1", tmp_path, servers=servers, proxy="http://proxy:3128"))
    assert ("proxy" in tomllib.loads((tmp_path / "site.toml").read_text())) == by_proxy


def test_units_of_all_features_and_of_the_target_stand_in_the_settings(tmp_path: Path) -> None:
    kind = tmp_path / "kind.toml"
    kind.write_text(TWO_CLASSES + '[target]\nname = "gap"\nunit = "mm"\nlow = 0.0\nhigh = 8.0\n')
    create_site(SiteSetup("plant-1", tmp_path / "home", asset_type=kind, data=tmp_path / "x.csv"))
    stated = tomllib.loads((tmp_path / "home" / "site.toml").read_text())["data"]
    assert stated["units"] == {"flow": "L/min", "ripple": "bar", "oil": "1", "gap": "mm"}


def test_links_to_data_and_authority_stay_links(tmp_path: Path) -> None:
    """A plant's ``current.csv`` is led to the next export, and what renews certificates does so too."""
    for name in ("monday.csv", "first.pem"):
        (tmp_path / name).touch()
    (tmp_path / "current.csv").symlink_to("monday.csv")
    (tmp_path / "ca.pem").symlink_to("first.pem")
    create_site(SiteSetup("p", tmp_path / "p", data=tmp_path / "current.csv", authority=tmp_path / "ca.pem"))
    settings = SiteSettings.from_toml(tmp_path / "p" / "site.toml")
    assert (settings.data.path, settings.ca) == (tmp_path / "current.csv", tmp_path / "ca.pem")


def test_what_lies_in_the_folder_is_named_from_there_and_what_lies_behind_a_link_is_the_same_file(
    tmp_path: Path
) -> None:
    (tmp_path / "far" / "exports").mkdir(parents=True)
    (tmp_path / "far" / "data.csv").touch()
    (tmp_path / "exports").symlink_to(tmp_path / "far" / "exports")
    for number, (given, named) in enumerate([
        (tmp_path / "p0" / "data.csv", "data.csv"), (tmp_path / "p1" / "x" / ".." / "data.csv", "data.csv"),
        (tmp_path / "exports" / ".." / "data.csv", str(tmp_path / "exports" / ".." / "data.csv")),
    ]):
        create_site(SiteSetup("p", tmp_path / f"p{number}", data=given))
        assert tomllib.loads((tmp_path / f"p{number}" / "site.toml").read_text())["data"]["path"] == named

"""The files of a version from a zip file that somebody gave."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest

from services.contracts.errors import InvalidInputError
from services.verification import bundle
from services.verification.bundle import DOCUMENT, VersionFiles, packed, read_files, saved


def test_what_was_packed_comes_back(tmp_path: Path) -> None:
    files = VersionFiles({"name": "pumps", "weights": [0.1, -0.0]}, b"certificate")
    (tmp_path / "x.zip").write_bytes(packed(files))
    assert read_files(tmp_path / "x.zip") == files and packed(files) == packed(files)


@pytest.mark.parametrize("name", [DOCUMENT, "of-nobody"])
def test_a_file_that_unpacks_to_more_than_any_version_has_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(bundle, "_MOST_BYTES", 1000)
    path, read = tmp_path / "x.zip", list[str]()
    whole = ZipFile.read

    def counted(archive: ZipFile, member: str) -> bytes:
        read.append(member)
        return whole(archive, member)

    monkeypatch.setattr(ZipFile, "read", counted)
    for size, fits in ((1000, True), (1001, False)):
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            archive.writestr(DOCUMENT, "{}".ljust(size if name == DOCUMENT else 2))
            archive.writestr("of-nobody", b"0" * (size if name != DOCUMENT else 2))
        if fits:
            assert read_files(path).document == {}
            read.clear()
            continue
        with pytest.raises(InvalidInputError, match="above 1000 bytes; no version has one"):
            read_files(path)
        assert read == []


@pytest.mark.parametrize(("text", "said"), [
    ("{", "is not JSON, so it is no version"), ("[]", "is not a version: a JSON object is needed"),
])
def test_a_document_that_is_none_is_called_by_its_own_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / DOCUMENT).write_text(text)
    with ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(DOCUMENT, text)
    for path in (tmp_path, tmp_path / "x.zip"):
        with pytest.raises(InvalidInputError, match=f"^{DOCUMENT} in {path} {said}"):
            read_files(path)
    with pytest.raises(InvalidInputError, match=f"^{tmp_path / DOCUMENT} is not"):
        read_files(tmp_path / DOCUMENT)


def test_a_zip_file_that_was_damaged_on_its_way_is_called_so(tmp_path: Path) -> None:
    """Packed anew by somebody, and then its first block is of a kind that there is not."""
    path = tmp_path / "x.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr(DOCUMENT, json.dumps({"weights": list(range(100))}))
    data = bytearray(path.read_bytes())
    data[30 + len(DOCUMENT)] = 255
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match="is not a zip file of a version's files"):
        read_files(path)


def test_files_that_cannot_be_written_are_not_said_to_be_saved(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "within"):
        with pytest.raises(InvalidInputError, match=f"^cannot write to {folder}: "):
            saved(VersionFiles({}, b"certificate"), folder)


@pytest.mark.parametrize(("place", "value"), [(42, 1), (44, 255)])
def test_a_zip_file_that_is_damaged_where_it_is_packed_by_lzma_is_none(tmp_path: Path, place: int, value: int) -> None:
    with ZipFile(tmp_path / "x.zip", "w", ZIP_LZMA) as archive:
        archive.writestr(DOCUMENT, "{}".ljust(400))
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[place] ^= value
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InvalidInputError, match="is not a zip file of a version's files"):
        read_files(tmp_path / "x.zip")


@pytest.mark.parametrize("looks", ["is_dir", "exists"])
def test_a_path_that_nobody_may_look_into_is_said_to_be_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    """Python tells of some errors only where it is asked what is there."""
    saved(VersionFiles({}, None), tmp_path)

    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, looks, refused)
    with pytest.raises(InvalidInputError, match="cannot be read: Permission denied"):
        read_files(tmp_path)
    monkeypatch.undo()
    with pytest.raises(InvalidInputError, match="cannot be read: File name too long"):
        read_files(tmp_path / ("x" * 300))

"""Image sets: got from a server of our own, checked, read back; a wrong or missing file is told in one line."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import pickle
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.benchmarks import images
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.published_files import FetchError, Package, PublishedSet, fetch_files
from tests.loopback import serving


def _idx(header: int, values: np.ndarray) -> bytes:
    return gzip.compress(bytes(header) + values.astype(np.uint8).tobytes(), mtime=0)


def _archive() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for number in range(1, 6):
            batch = pickle.dumps({b"data": np.full((2, 3072), number, np.uint8), b"labels": [number, 0]})
            member = tarfile.TarInfo(f"cifar-10-batches-py/data_batch_{number}")
            member.size = len(batch)
            archive.addfile(member, io.BytesIO(batch))
    return target.getvalue()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A server of small files in the published formats, whose checksums are the known ones."""
    folder = tmp_path / "server"
    folder.mkdir()
    pixels = np.arange(3 * 784) % 256
    contents = {
        "mnist": {images._IMAGES: _idx(16, pixels), images._LABELS: _idx(8, np.array([3, 1, 9]))},
        "cifar10": {images._CIFAR: _archive()},
    }
    sets = {}
    for name, files in contents.items():
        for file, content in files.items():
            (folder / file).write_bytes(content)
        sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
        sets[name] = PublishedSet("", sums)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args, **more):
            super().__init__(*args, directory=str(folder), **more)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setattr(images, "IMAGE_SETS", sets)
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path / "data"))
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "data", folder


def test_what_is_fetched_is_what_is_read(served) -> None:
    base, data, _ = served
    for name in ("mnist", "cifar10"):
        assert fetch_files(name, images.IMAGE_SETS[name], data, base=base) == data / name
    features, labels = images.load_images("mnist")
    np.testing.assert_array_equal(features.ravel() * 255.0, np.arange(3 * 784) % 256)
    np.testing.assert_array_equal(labels, [3.0, 1.0, 9.0])
    features, labels = images.load_images("cifar10")
    assert features.shape == (10, 3072) and features[0, 0] == 1 / 255
    np.testing.assert_array_equal(labels, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0])


def test_a_file_that_is_not_the_known_one_is_not_kept(served) -> None:
    base, data, folder = served
    (folder / images._LABELS).write_bytes(b"something else")
    with pytest.raises(FetchError, match="is not the expected file: its SHA-256 is"):
        fetch_files("mnist", images.IMAGE_SETS["mnist"], data, base=base)
    assert not (data / "mnist" / images._LABELS).exists()


def test_a_missing_set_says_how_to_get_it(served) -> None:
    with pytest.raises(MissingDataError, match="python -m tests.benchmarks.fetch mnist --out /"):
        images.load_images("mnist")


@pytest.fixture
def packaged(served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A set that a package has too, packed again: what it holds is alike, its checksums are others."""
    base, data, folder = served
    again = tmp_path / "package"
    again.mkdir()
    for file in (images._IMAGES, images._LABELS):
        (again / file).write_bytes(gzip.compress(gzip.decompress((folder / file).read_bytes()), 1, mtime=1))
    published = images.IMAGE_SETS["mnist"].files
    assert not {hashlib.sha256(file.read_bytes()).hexdigest() for file in again.iterdir()} & set(published.values())
    holds = {file.name: hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest() for file in again.iterdir()}
    commands = f"apt-get install dataset-toy && ln -s {again} {{folder}}"
    source = PublishedSet("", published, Package("Debian's dataset-toy", commands, holds))
    monkeypatch.setitem(images.IMAGE_SETS, "mnist", source)
    return base, data, again, source


def test_a_package_s_files_are_read_as_the_publisher_s(packaged) -> None:
    base, data, again, source = packaged
    fetch_files("mnist", source, data, base=base)
    features, labels = images.load_images("mnist")
    for file in (data / "mnist").iterdir():
        file.unlink()
    (data / "mnist").rmdir()
    (data / "mnist").symlink_to(again)
    of_package, its_labels = images.load_images("mnist")
    np.testing.assert_array_equal(of_package, features)
    np.testing.assert_array_equal(its_labels, labels)


def test_a_fetch_leaves_a_linked_package_as_it_is(packaged) -> None:
    base, data, again, source = packaged
    data.mkdir()
    (data / "mnist").symlink_to(again)
    before = {file.name: file.read_bytes() for file in again.iterdir()}
    fetch_files("mnist", source, data, base=f"{base}/nowhere")
    assert {file.name: file.read_bytes() for file in again.iterdir()} == before


def test_a_file_that_neither_gives_out_is_refused_with_both_sums(packaged) -> None:
    _, data, folder, source = packaged
    (data / "mnist").mkdir(parents=True)
    ours, theirs = source.files[images._IMAGES], source.package.holds[images._IMAGES]
    whole = (folder / images._IMAGES).read_bytes()
    for other in (b"other", gzip.compress(b"other"), whole[:-9], whole[:9] + b"\7" * 99):
        (data / "mnist" / images._IMAGES).write_bytes(other)
        with pytest.raises(FetchError, match=f"SHA-256 is .*, expected {ours}, or of what it holds {theirs}$"):
            images.load_images("mnist")


def test_who_has_no_set_is_told_of_the_package(packaged) -> None:
    base, data, again, source = packaged
    toy = "; Debian's dataset-toy has the same"
    commands = f"{toy}: apt-get install dataset-toy && ln -s {again} {data / 'mnist'}$"
    with pytest.raises(FetchError, match=f"could not be read .*{commands}"):
        fetch_files("mnist", source, data, base=f"{base}/nowhere")
    assert not (data / "mnist").exists()  # else the link would end within it
    with pytest.raises(MissingDataError, match=f"fetch mnist --out .*{commands}"):
        images.load_images("mnist")


@pytest.mark.parametrize(("name", "pixels", "of_each_class"), [
    ("fashion_mnist", 784, [6000] * 10),
    ("mnist", 784, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
    ("cifar10", 3072, [5000] * 10),
])
def test_a_real_set_is_what_is_said_of_it(name: str, pixels: int, of_each_class: list[int]) -> None:
    """The real files, the publisher's or a package's: so many images of each class."""
    try:
        features, labels = images.load_images(name)
    except MissingDataError as missing:
        pytest.skip(str(missing))
    assert features.shape == (sum(of_each_class), pixels) and features.min() == 0.0 and features.max() == 1.0
    assert np.bincount(labels.astype(int)).tolist() == of_each_class


@pytest.fixture
def pictures(served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that has CIFAR-10 as a picture for each batch, and its labels as a list; two images a batch."""
    again, colours = tmp_path / "pictures", np.random.default_rng(0).integers(0, 256, (10, 3, 1024)).astype(np.uint8)
    again.mkdir()
    for number in range(1, 6):
        batch = colours[2 * number - 2 : 2 * number].transpose(0, 2, 1)
        Image.fromarray(batch).save(again / f"data_batch_{number}.png")
    (again / images._PICTURE_LABELS).write_text("[6, 9, 9, 4, 1, 1, 2, 7, 8, 3]")
    np.save(again / "colours.npy", colours)
    files = [*again.glob("*.png"), again / images._PICTURE_LABELS]
    own = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    package = Package("npm's toy", f"cp {again}/* {{folder}}", instead=own)
    monkeypatch.setitem(images.IMAGE_SETS, "cifar10", replace(images.IMAGE_SETS["cifar10"], package=package))
    return again


def test_pictures_of_a_package_are_read_as_the_archive_s_rows(served, pictures: Path) -> None:
    _, data, _ = served
    with pytest.raises(MissingDataError, match="npm's toy has the same: cp "):
        images.load_images("cifar10")
    shutil.copytree(pictures, data / "cifar10")
    features, labels = images.load_images("cifar10")
    np.testing.assert_array_equal(features * 255.0, np.load(pictures / "colours.npy").reshape(10, 3072))
    np.testing.assert_array_equal(labels, [6, 9, 9, 4, 1, 1, 2, 7, 8, 3])


def test_pictures_that_are_there_are_not_fetched_again_and_not_read_where_they_are_others(served, pictures) -> None:
    _, data, _ = served
    shutil.copytree(pictures, data / "cifar10")
    nowhere = "http://127.0.0.1:9"
    assert fetch_files("cifar10", images.IMAGE_SETS["cifar10"], data, base=nowhere) == data / "cifar10"
    (data / "cifar10" / images._PICTURE_LABELS).write_text("[6, 9, 9, 4, 1, 1, 2, 7, 8, 4]")
    with pytest.raises(FetchError, match="train_lables.json is not the expected file"):
        images.load_images("cifar10")
    with pytest.raises(FetchError, match="could not be read"):
        fetch_files("cifar10", images.IMAGE_SETS["cifar10"], data, base=nowhere)
    shutil.copy(pictures / images._PICTURE_LABELS, data / "cifar10")
    (data / "cifar10" / "data_batch_3.png").unlink()
    with pytest.raises(MissingDataError, match="data_batch_3.png"):
        images.load_images("cifar10")


def test_the_archive_goes_before_pictures(served, pictures: Path) -> None:
    base, data, folder = served
    shutil.copytree(pictures, data / "cifar10")
    shutil.copy(folder / images._CIFAR, data / "cifar10")
    assert images.load_images("cifar10")[0][0, 0] == 1 / 255

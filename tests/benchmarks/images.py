"""Image sets of the papers: MNIST, Fashion-MNIST and CIFAR-10, read from ``BALLAST_DATA_DIR``.

``python -m tests.benchmarks.fetch mnist --out FOLDER`` gets the files as they are published, about 10 MB for MNIST,
30 MB for Fashion-MNIST and 170 MB for CIFAR-10, and keeps them only when their SHA-256 is the known one. Fashion-MNIST
is in Debian, too, as the package ``dataset-fashion-mnist``, whose folder may be linked as ``fashion_mnist``. Nothing
else here reaches out; a set that is not there is said to be missing.
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
    ),
    "fashion_mnist": PublishedSet(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        {
            _IMAGES: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            _LABELS: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        },
        # with each file's name and time put back into its gzip header these are the publisher's, byte by byte
        Package(
            "dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist",
            {
                _IMAGES: "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
                _LABELS: "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
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

"""The seven UCI sets of the study and how they are split, as the authors' published code does it.

The positive class of the F-1 score is the one that this code labels +1. Rows with a missing cell are dropped. Test part
and sites are stratified by class; sites are of equal size; ``floor(.7 N) - 2`` rows are for training and
``floor(.3 N) - 2`` for testing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from tests.benchmarks.data import load_binary

N_SITES = 4
N_FOLDS = 5


@dataclass(frozen=True)
class UciSet:
    """A set: short name of the table, file, positive classes."""

    name: str
    file: str
    positive: tuple[str, ...]


SETS = (
    UciSet("Banknote", "banknote_authentication", ("1",)),
    UciSet("BCW", "breast_cancer_wisconsin_diagnostic", ("B",)),
    UciSet("CB", "sonar", ("M",)),
    UciSet("MM", "mammographic_mass", ("1",)),
    UciSet("Parkinson's", "parkinsons", ("1",)),
    UciSet("Rice", "rice_cammeo_osmancik", ("Osmancik",)),
    UciSet("UKM", "user_knowledge_modeling", ("Middle", "High")),
)


@dataclass(frozen=True)
class Split:
    """One repetition: training rows with their site (n,) and fold (n,), and test rows.

    ``ranges`` (2, P) are the sensor ranges, low and high, where they are known; ``name`` is that of the set, or "pump".
    """

    features: FloatArray
    labels: FloatArray
    site: np.ndarray
    fold: np.ndarray
    test_features: FloatArray
    test_labels: FloatArray
    ranges: FloatArray | None = None
    name: str = ""


def split_seed(chosen: UciSet, repetition: int) -> list[int]:
    """Seed of the generator that draws the split of a repetition."""
    return [repetition, sum(chosen.file.encode())]


def split(chosen: UciSet, repetition: int) -> Split:
    """Repetition of a set: the same number gives the same split to every method."""
    features, labels = load_binary(chosen.file, chosen.positive)
    rng = np.random.default_rng(split_seed(chosen, repetition))
    order = rng.permutation(labels.shape[0])
    features, labels = features[order], labels[order]
    n_train, n_test = math.floor(0.7 * labels.shape[0]) - 2, math.floor(0.3 * labels.shape[0]) - 2
    positive = np.flatnonzero(labels > 0)
    negative = np.flatnonzero(labels < 0)
    share = positive.shape[0] / labels.shape[0]
    test_positive, train_positive = round(share * n_test), round(share * n_train)
    test = np.concatenate([positive[:test_positive], negative[: n_test - test_positive]])
    train_pos = positive[test_positive : test_positive + train_positive]
    train_neg = negative[n_test - test_positive :][: n_train - train_positive]
    train = np.concatenate([train_pos, train_neg])
    site = np.concatenate([np.arange(part.shape[0]) % N_SITES for part in (train_pos, train_neg)])
    return Split(
        features[train], labels[train], site, folds_of(site, rng), features[test], labels[test], name=chosen.name
    )


def scaled(data: Split, *, by_sensor: bool = False) -> Split:
    """Features scaled so that the training rows fill [0, 1], or, with ``by_sensor``, the sensor ranges if known."""
    low, high = data.features.min(axis=0), data.features.max(axis=0)
    if by_sensor and data.ranges is not None:
        low, high = data.ranges
    width = np.where(high > low, high - low, 1.0)
    return replace(data, features=(data.features - low) / width, test_features=(data.test_features - low) / width)


def folds_of(site: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row, drawn within each site."""
    fold = np.zeros(site.shape[0], dtype=int)
    for g in np.unique(site):
        own = np.flatnonzero(site == g)
        fold[own] = rng.permutation(own.shape[0]) * N_FOLDS // own.shape[0]
    return fold


def f1_positive(labels: FloatArray, scores: FloatArray) -> float:
    """F-1 of the positive class; a score of 0 counts as positive, as in the authors' code."""
    predicted = np.where(scores < 0, -1.0, 1.0)
    return _f1(labels, predicted, 1.0)


def f1_macro(labels: FloatArray, scores: FloatArray) -> float:
    """Mean of the F-1 of both classes."""
    predicted = np.where(scores < 0, -1.0, 1.0)
    return 0.5 * (_f1(labels, predicted, 1.0) + _f1(labels, predicted, -1.0))


def correct_rate(labels: FloatArray, scores: FloatArray) -> float:
    """Mean over the two classes of the share of their rows classified correctly (mCCR)."""
    predicted = np.where(scores < 0, -1.0, 1.0)
    return float(np.mean([(predicted[labels == sign] == sign).mean() for sign in (-1.0, 1.0)]))


def _f1(labels: FloatArray, predicted: FloatArray, sign: float) -> float:
    hits = float(((labels == sign) & (predicted == sign)).sum())
    marked = float((labels == sign).sum() + (predicted == sign).sum())
    return 2.0 * hits / marked if marked > 0 else 0.0

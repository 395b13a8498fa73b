"""Tables dealt to four plants of which no two are alike, and the rows of each that train, are counted, are new."""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from tests.benchmarks.data import load_table, table_path

CLASSES = (
    "breast_cancer_wisconsin_diagnostic", "banknote_authentication", "rice_cammeo_osmancik", "steel_plates_faults",
    "user_knowledge_modeling",
)
TARGETS = {
    "abalone": (
        "label", ("length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight", "shell_weight"),
    ),
    "ai4i2020": (
        "torque_nm", ("air_temperature_k", "process_temperature_k", "rotational_speed_rpm", "tool_wear_min", "label"),
    ),
    "palmer_penguins": ("body_mass_g", ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "year")),
}
"""Target and features of each table."""

PLANTS = 4
IntArray = NDArray[np.intp]


def scaled(features: FloatArray) -> FloatArray:
    """Features in [0, 1] by their ranges."""
    low, width = features.min(axis=0), np.ptp(features, axis=0)
    return np.asarray((features - low) / np.where(width > 0, width, 1.0))


def unlike_plants(features: FloatArray) -> IntArray:
    """Plant of each row (N,): quarters along the first principal component, blurred by half of its spread."""
    centred = features - features.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    along = along + 0.5 * along.std() * np.random.default_rng(0).standard_normal(len(along))
    return np.asarray(np.argsort(np.argsort(along)) * PLANTS // len(along))


def parts(plants: IntArray, seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Rows that train, are counted, are new: three fifths, one, one of each plant."""
    found: tuple[list[int], list[int], list[int]] = ([], [], [])
    draw = np.random.default_rng([7, seed])
    for plant in range(PLANTS):
        rows = draw.permutation(np.flatnonzero(plants == plant))
        ends = [3 * len(rows) // 5, 4 * len(rows) // 5]
        for part, chosen in zip(found, np.split(rows, ends), strict=True):
            part.extend(chosen.tolist())
    train, counted, new = (np.array(sorted(part), dtype=np.intp) for part in found)
    return train, counted, new


def class_table(name: str) -> tuple[FloatArray, IntArray]:
    """Scaled features of the complete rows, and class indices."""
    features, labels = load_table(name)
    complete = ~np.isnan(features).any(axis=1)
    return scaled(features[complete]), np.unique(np.array(labels)[complete], return_inverse=True)[1]


def target_table(name: str) -> tuple[FloatArray, FloatArray]:
    """Features of the complete rows and the target, both scaled to [0, 1] (abalones: rings / 30)."""
    target, measures = TARGETS[name]
    with table_path(name).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if all(row[each] for each in (target, *measures))]
    values = np.array([[float(row[each]) for each in measures] for row in rows])
    found = np.array([float(row[target]) for row in rows])
    return scaled(values), found / 30.0 if name == "abalone" else scaled(found[:, None])[:, 0]

"""All columns of the tables, by name, in the order of the tables."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmarks.papers.fdr_svm.author_columns import AUTHORS
from tests.benchmarks.papers.fdr_svm.choice import Cell, Grid
from tests.benchmarks.papers.fdr_svm.columns import (
    admm,
    admm_reg,
    admm_sc,
    ballast,
    central,
    mended,
    rival,
    sm_code,
    sm_text,
)
from tests.benchmarks.papers.fdr_svm.our_features import ON_OUR_FEATURES
from tests.benchmarks.papers.fdr_svm.rivals import SETTINGS as RIVALS
from tests.benchmarks.papers.fdr_svm.service_columns import SERVICE
from tests.benchmarks.papers.fdr_svm.uci import Split

COLUMNS: dict[str, Callable[[Split, Grid], Cell]] = {
    "Central (DR-SVM)": central,
    **{name: rival(name) for name in RIVALS},
    **{f"{name}, in [0, 1]": rival(name, unit=True) for name in RIVALS},
    **{name: column for name, column in AUTHORS.items() if not name.startswith("ADMM")},
    **ON_OUR_FEATURES,
    "SM": sm_text,
    "SM, code's step": sm_code,
    "ADMM": admm,
    "ADMM-SC": admm_sc,
    "ADMM-SC, code's tau": AUTHORS["ADMM-SC, code's tau"],
    "ADMM-REG": admm_reg,
    "mended and certified": mended,
    "Ballast's default": ballast,
    **SERVICE,
}
AS_PRINTED = tuple(name for name in COLUMNS if name not in ("mended and certified", "Ballast's default", *SERVICE))


def printed_name(column: str) -> str:
    """Name under which the paper prints a column, in whatever settings; "" for those on our features: it has none."""
    return "" if column in ON_OUR_FEATURES else column.split(",")[0]

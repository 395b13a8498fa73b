"""Classes that a version never says, though held-out rows have them: what a good F-1 of the others can hide."""

from __future__ import annotations

from collections.abc import Sequence

from services.contracts.versions.version_facts import Confusion


def undiagnosed(classes: Sequence[str], confusion: Confusion | None) -> tuple[str, ...]:
    """A sentence for each class with held-out rows of which not one row was diagnosed; none without counts.

    Parameters
    ----------
    classes : names, in the order of the counts. confusion : (C, C), true class by row, diagnosed class by column.
    """
    if confusion is None:
        return ()
    said = [sum(column) for column in zip(*confusion, strict=True)]
    return tuple(
        f"No held-out row was diagnosed as {name}, though {sum(row)} are: the model does not tell it apart. A smaller "
        'radius, another lift, or tuning = "auto" in the plan may.'
        for name, row, times in zip(classes, confusion, said, strict=True)
        if any(row) and not times
    )

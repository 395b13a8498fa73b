"""What the summed certificate of more than two classes means, in words."""

from __future__ import annotations

from services.contracts.problems.training_spec import TrainingSpec


def several_classes(spec: TrainingSpec, n_classes: int) -> str:
    """Sentences for a version of ``n_classes`` classes; empty for two, and for a loss of all scores.

    A wrong diagnosis has ``s_l >= s_y`` for some l, and hinges ``(1 - s_y)_+ + (1 + s_l)_+ >= 2``: the sum is 2 at
    least, so half of its worst case bounds the share of wrong diagnoses. As one problem it costs ``1 + s_l - s_y``, at
    least 1, so the worst case itself does.
    """
    loss = spec.loss
    if n_classes <= 2 or loss.task != "classification" or loss.of_all_scores:
        return ""
    if spec.multi_class == "crammer_singer":
        return (
            f"Risk and bounds are of one problem for all {n_classes} classes (Crammer-Singer): one worst case and one "
            "worst mix of plants for all of them. A wrong diagnosis costs at least 1: its share is at most the "
            "worst-case risk."
        )
    text = (
        f"Risk and bounds are sums over {n_classes} problems, each class against the rest with a worst case and a "
        "worst mix of plants of its own: no single distribution need reach them all, and the gap is that of the sum, "
        "not of each class."
    )
    if loss.name == "hinge":
        text += " A wrong diagnosis costs at least 2 in the sum: its share is at most half of the worst-case risk."
    return text

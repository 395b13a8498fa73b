"""The part of a report that shows how a model's terms were chosen: the curve, drawn and as a table."""

from __future__ import annotations

from html import escape

from models.losses.catalogue import LossName
from services.contracts.problems.tuning_curve import TuningCurve, candidate_words, cost_words, score_words
from services.reporting.html import figure, table

TITLE = "How the terms were chosen"
HEAD = ("candidate", "held-out score", "standard error", "folds", "gap", "")
WIDTH, LINE, LEFT, RIGHT = 640, 18, 210, 20


def caption(loss: LossName) -> str:
    """What the columns of the table are."""
    return f"Candidates: radius by factor, {cost_words(loss)}, lift, ball over the sites; scores: {score_words(loss)}"


def tuning_section(curve: TuningCurve | None, loss: LossName) -> str:
    """Heading, what it cost and chose, chart and table; empty for a model whose terms were not tuned."""
    if curve is None:
        return ""
    return "\n".join((
        f"<h2>{TITLE}</h2>", f"<p>{escape(tuning_account(curve))}</p>", tuning_chart(curve),
        table(caption(loss), HEAD, tuning_rows(curve)),
    ))


def tuning_account(curve: TuningCurve) -> str:
    """Where a choice comes from, why it was made, and what it cost."""
    cost = (
        f"{curve.rounds} rounds and {curve.numbers:.0f} numbers a plant, of a budget of {figure(curve.budget)} "
        f"trainings of {curve.reference_rounds} rounds and {curve.reference_numbers:.0f} numbers"
    )
    origin = f"The choice is that of run {curve.reused_from}. " if curve.reused_from else ""
    return f"{origin}{curve.why}; rule {curve.rule}, {curve.folds} folds. It cost {cost}."


def tuning_rows(curve: TuningCurve) -> list[list[str]]:
    """A row a candidate, as :data:`HEAD` names them."""
    return [
        [
            candidate_words(each), figure(each.score), figure(each.standard_error), str(each.folds), figure(each.gap),
            "chosen" if number == curve.chosen else "",
        ]
        for number, each in enumerate(curve.candidates)
    ]


def tuning_chart(curve: TuningCurve) -> str:
    """SVG of each candidate's score with a bar of one standard error to either side; the chosen one is filled.

    Below stand the least and the greatest score, each under its place.
    """
    known = [each.score for each in curve.candidates if each.score is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    span, height = (high - low) or 1.0, LINE * (len(curve.candidates) + 2)

    def across(score: float) -> float:
        inner = WIDTH - LEFT - RIGHT
        return min(max(LEFT + inner * (0.1 + 0.8 * (score - low) / span), LEFT), WIDTH - RIGHT)

    parts = []
    for number, each in enumerate(curve.candidates):
        y = LINE * (number + 1)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(candidate_words(each))}</text>')
        if each.score is None:
            continue
        x, error = across(each.score), each.standard_error or 0.0
        ends = across(each.score - error), across(each.score + error)
        parts.append(f'<line x1="{ends[0]:.1f}" y1="{y}" x2="{ends[1]:.1f}" y2="{y}" stroke="black"/>')
        fill = "black" if number == curve.chosen else "white"
        parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{fill}" stroke="black"/>')
    for score in sorted({low, high}) if known else ():
        parts.append(f'<text x="{across(score):.1f}" y="{height - 6}" text-anchor="middle">{figure(score)}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" font-family="sans-serif" font-size="11">\n'
        f"<title>Held-out score by candidate</title>\n{body}\n</svg>\n"
    )

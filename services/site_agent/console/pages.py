"""The pages, from plain data: what a plant's people want to know of their own agent, the worst news first."""

from __future__ import annotations

from typing import Any, Final

from services.contracts.plain_words import counted
from services.looks import parts
from services.looks.parts import Html
from services.site_agent.console import policy_words
from services.site_agent.console.ledger_view import PAGE, Line, line

NAVIGATION: Final = (
    ("/", "Overview"), ("/ledger", "Ledger"), ("/exposure", "Exposure"), ("/drift", "Drift"), ("/policy", "Policy"),
)
_MOST_TOLD: Final = 20
"""Problems of a ledger that are listed; one line out of place can make many."""


def overview(found: dict[str, Any]) -> Html:
    """What counts, and what wants attention first."""
    connection, ledger = found["connection"], found["ledger"]
    answered = ledger.get("last_answer")
    return parts.joined([
        parts.head(found["site_id"], "What the agent of this plant does, and what has left."),
        _attention(found["attention"]),
        parts.tiles(
            parts.tile(
                "Agent", parts.badge("connected", "good") if connection["connected"] else parts.badge("away", "warn"),
                _since(connection, ledger),
            ),
            parts.tile("Last answer", parts.when(answered) if answered else "none yet"),
            parts.tile("Runs taken part in", ledger.get("runs", parts.UNKNOWN)),
            parts.tile(
                "Left today", parts.size(ledger.get("bytes_today")),
                f"{counted(ledger.get('messages_today', 0), 'message')} since midnight UTC",
            ),
            parts.tile("Ledger", _soundness(ledger["sound"]), counted(ledger["entries"], "entry", "entries")),
            parts.tile("Rows exposed", *_exposed(found["exposure"])),
            parts.tile("Drift", *_drifted(found["drift"])),
        ),
        parts.card(
            "What stays, and what leaves",
            Html("<p>Rows, labels and measurements stay in this plant. What leaves are vectors and counts of the "
                 'model\'s size, under your own <a href="/policy">policy</a>, each written into the '
                 '<a href="/ledger">ledger</a> before it is sent.</p>'),
        ),
        parts.api("/overview.json"),
    ])


def ledger(found: dict[str, Any]) -> Html:
    """What has left, newest first."""
    top = parts.head("Ledger", "Every message that left this plant, the newest first: names and shapes, no values.")
    if found["trouble"] is not None:
        return parts.joined([top, parts.notice(found["trouble"], "bad", "The ledger cannot be read")])
    if not found["count"] and not found["problems"]:
        nothing = parts.empty("Nothing has left yet: the first entry is the agent's hello.")
        return parts.joined([top, nothing, _json("/ledger")])
    count = counted(found["count"], "entry", "entries")
    sound = f"{count}, {parts.size(found['bytes'])} in all. The chain was checked from the first entry to the last."
    state = (
        parts.notice(sound, "good", "Sound") if found["sound"]
        else parts.notice(_several(found["problems"]), "bad", "The ledger is not what was written")
    )
    first = (found["page"] - 1) * PAGE
    rows = [_ledger_row(line(entry)) for entry in found["entries"]]
    listed = parts.card(
        f"Entries {first + 1} to {first + len(rows)} of {found['count']}" if rows else "No entry can be read",
        parts.table(
            "Messages that left",
            ["No.", "Time", "What, with its fields and their shapes", "Run", "Round", "Bytes", "Rows exposed"], rows,
            numbers=(4, 5, 6), wide=(2,),
        ) if rows else "",
        parts.paging("/ledger", found["page"], found["pages"]),
    )
    return parts.joined([top, state, listed, _json("/ledger")])


def exposure(found: dict[str, Any]) -> Html:
    """What the answers so far isolate, with the policy's limits."""
    top = parts.head("Exposure", "What could be read off this plant's answers, if one put all of them together.")
    if found["trouble"] is not None:
        why = parts.notice(found["trouble"], "bad", "The exposure is not known")
        return parts.joined([top, why, _json("/exposure")])
    if not found["answers"]:
        return parts.joined([top, parts.empty(found["told"][0]), _json("/exposure")])
    rows, left = found["rows"], found["runs_left_today"]
    return parts.joined([
        top,
        parts.tiles(
            parts.tile("Rows exposed", *_exposed(found)),
            parts.tile("By two answers", found["by_pairs"], f"of {counted(rows, 'row')}"),
            parts.tile("Highest leverage", f"{found['leverage']:.3f}",
                       f"{found['leveraged']} rows near 1, {int(found['leverage_limit'] * rows)} allowed"),
            parts.tile("Answers", found["answers"], f"in {counted(found['runs'], 'run')}"),
            parts.tile("Runs left today", "any" if left is None else left, "in 24 hours, by the policy"),
        ),
        parts.card("In words", Html("\n".join(f"<p>{parts.escaped(text)}</p>" for text in found["told"]))),
        _json("/exposure"),
    ])


def drift(found: dict[str, Any]) -> Html:
    """How far each sensor has moved since the first join."""
    lead = "How far readings have moved since this plant first took part with these sensors and ranges, one by one."
    top = parts.head("Drift", lead)
    if found["trouble"] is not None:
        return parts.joined([top, parts.notice(found["trouble"], "bad", "The drift is not known"), _json("/drift")])
    if found["drift"] is None:
        return parts.joined([top, parts.empty(found["told"][0]), _json("/drift")])
    chance = found["chance"]
    rows = [
        (name, Html(f"{distance:.2f} {parts.bar(distance)}"), _moved(distance > chance))
        for name, distance in sorted(found["sensors"].items(), key=lambda each: -each[1])
    ]
    return parts.joined([
        top,
        parts.tiles(
            parts.tile("Drift", *_drifted(found)),
            parts.tile("Explained by chance", f"{chance:.2f}", "a sensor may differ so far and have not moved"),
            parts.tile("Rows now", found["rows"], "training rows"),
        ),
        parts.card(
            "Sensors",
            parts.table("Distance of each sensor", ["Sensor", "Distance, 0 to 1", "Since the first run"], rows),
        ),
        parts.notice(Html(
            "The distance is the largest difference of the shares of rows at or below a reading, then and now. "
            "After a sensor was replaced, <code>ballast-site drift --from-now</code> begins anew with the rows of now."
        )),
        _json("/drift"),
    ])


def policy(found: dict[str, Any]) -> Html:
    """What may leave, and that the plant owns it."""
    top = parts.head("Policy", "What this plant lets out. What is not listed here does not leave.")
    owned = Html(f"The file is <code>{parts.escaped(found['path'])}</code>. You own it: Ballast only reads it, at the "
                 "start of the agent. Restart the agent after a change.")
    if found["trouble"] is not None:
        why = parts.notice(found["trouble"], "bad", "The policy cannot be read")
        return parts.joined([top, why, parts.notice(owned, "info", "It is yours"), _json("/policy")])
    told = found["policy"]
    peers = [f"{name}: {key}" for name, key in told["peers"].items()]
    return parts.joined([
        top, parts.notice(owned, "info", "It is yours"),
        parts.card("Messages", _allowed("Messages that may leave", policy_words.leaves(told))),
        parts.card("What a run may show the OEM", _allowed("What a run may show", policy_words.revealed(told)),
                   Html("<h3>Told besides</h3>"), _allowed("Told besides", policy_words.switches(told))),
        parts.card(
            "Limits",
            parts.table(
                "Limits", ["Line", "Value", "What it counts"], policy_words.limits(told), numbers=(1,), wide=(2,)
            ),
        ),
        parts.card(
            "Methods",
            parts.table("Methods that are answered", ["Method", "What it is"], policy_words.methods(told))
            if told["methods"] else parts.empty("No method is listed, so no task is answered."),
        ),
        parts.card("With whom", parts.facts([
            ("Kinds of machine", ", ".join(told["asset_types"]) or "none, so no task is answered"),
            ("Plants to mask with", "; ".join(peers) or "those that the OEM names"),
            ("Auditors", ", ".join(told["auditors"]) or "none"),
        ])),
        _json("/policy"),
    ])


def _attention(items: list[dict[str, str]]) -> Html:
    if not items:
        return parts.notice("Nothing needs attention.", "good")

    def item(each: dict[str, str]) -> str:
        more = f'<a href="{parts.escaped(each["page"])}">Look at it</a>' if each["page"] else "<span></span>"
        kind = {"bad": "act", "warn": "look", "info": "know"}[each["kind"]]
        return (f"<li><span>{parts.badge(kind, each['kind'])} <strong>{parts.escaped(each['what'])}</strong><br>"
                f'<span class="quiet">{parts.escaped(each["why"])}</span></span>{more}</li>')

    return parts.card("Needs attention", Html(f'<ul class="attention">{"".join(map(item, items))}</ul>'))


def _ledger_row(told: Line) -> tuple[object, ...]:
    what = parts.badge("refused", "warn") + Html(" ") if told.refused else Html("")
    what += parts.escaped(told.what)
    if told.fields:
        what += Html(f'<div class="quiet small">{parts.escaped(told.fields)}</div>')
    run = Html(f'<span class="mono">{parts.escaped(told.run[:8])}</span>') if told.run else ""
    return (
        told.sequence, parts.when(told.time), Html(what), run,
        parts.UNKNOWN if told.round is None else told.round, parts.UNKNOWN if told.bytes is None else told.bytes,
        told.exposure,
    )


def _exposed(found: dict[str, Any]) -> tuple[object, object]:
    if found["trouble"] is not None:
        return parts.badge("not known", "bad"), ""
    if not found["answers"]:
        return 0, "nothing was answered yet"
    if found.get("unaccounted"):
        return found["rows"], f"of {found['rows']} are counted as told: not all that was said can be counted"
    return found["by_differences"], f"of {found['rows']}; {int(found['exposure_limit'] * found['rows'])} allowed"


def _drifted(found: dict[str, Any]) -> tuple[object, object]:
    if found["trouble"] is not None:
        return parts.badge("not known", "warn"), ""
    if found["drift"] is None:
        return parts.UNKNOWN, "no join yet"
    return f"{found['drift']:.2f}", f"since {found['since'][:10]}" if found["drift"] else "no more than chance"


def _since(connection: dict[str, Any], ledger: dict[str, Any]) -> str:
    """When the agent was seen, and its last hello: one leaves at each connection, and when the OEM calls the roll."""
    if not connection["connected"]:
        return str(connection["told"])
    hello = ledger.get("last_hello")
    return f"{connection['told']}; {f'last hello {hello:%Y-%m-%d %H:%M} UTC' if hello else 'no hello yet'}"


def _soundness(sound: bool) -> Html:
    return parts.badge("sound", "good") if sound else parts.badge("changed", "bad")


def _moved(moved: bool) -> Html:
    return parts.badge("has moved", "warn") if moved else parts.badge("as before", "good")


def _allowed(label: str, rows: list[tuple[str, bool, str]]) -> Html:
    return parts.table(label, ["Line", "State", "What it is"], [
        (name, parts.badge("may leave", "info") if allowed else parts.badge("stays"), text)
        for name, allowed, text in rows
    ], wide=(2,))


def _several(problems: list[str]) -> Html:
    more = [f"and {len(problems) - _MOST_TOLD} more"] if len(problems) > _MOST_TOLD else []
    return Html("<br>".join(parts.escaped(problem) for problem in [*problems[:_MOST_TOLD], *more]))


def _json(path: str) -> Html:
    return parts.api(f"{path}.json")

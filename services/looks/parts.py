"""What pages are made of, as functions: the macros of the operator's console, for who has no template engine.

Every value is escaped unless it is :class:`Html`: a name from a file stays a name. The style sheet knows the classes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

UNKNOWN: Final = "–"
_SIGN = "M12 2 3 7v10l9 5 9-5V7zm0 2.3 6.7 3.7L12 11.7 5.3 8zM5 9.7l6 3.3v6.6l-6-3.3zm8 9.9V13l6-3.3v6.6z"


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def escaped(value: object) -> Html:
    """A value as HTML; what is HTML stays as it is."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(parts: Iterable[object]) -> Html:
    """Parts one after the other, a line each."""
    return Html("\n".join(escaped(part) for part in parts))


def head(title: object, lead: object = "") -> Html:
    """The top of a page."""
    below = f'<p class="lead">{escaped(lead)}</p>' if lead else ""
    return Html(f"<div><h1>{escaped(title)}</h1>{below}</div>")


def api(address: str) -> Html:
    """Where the same is as JSON."""
    shown = escaped(address)
    return Html(f'<p class="api">The same as JSON: <a href="{shown}"><code>{shown}</code></a></p>')


def tile(name: object, value: object, more: object = "") -> Html:
    """One figure that counts."""
    small = f"<small>{escaped(more)}</small>" if more else ""
    return Html(f'<div class="tile"><dt>{escaped(name)}</dt><dd><span>{escaped(value)}</span>{small}</dd></div>')


def tiles(*each: Html) -> Html:
    """Figures beside one another."""
    return Html(f'<dl class="tiles">{joined(each)}</dl>')


def badge(word: object, kind: str = "") -> Html:
    """A state: a sign and a word beside the colour (good, warn, bad, info)."""
    return Html(f'<span class="badge {escaped(kind)}">{escaped(word)}</span>')


def notice(text: object, kind: str = "info", title: object = "") -> Html:
    """Something to know, to look at, or that went wrong."""
    alert = ' role="alert"' if kind == "bad" else ""
    top = f"<p><strong>{escaped(title)}</strong></p>" if title else ""
    return Html(f'<div class="notice {escaped(kind)}"{alert}>{top}<p>{escaped(text)}</p></div>')


def empty(text: object) -> Html:
    """An empty state; it says what to do next."""
    return Html(f'<p class="empty">{escaped(text)}</p>')


def bar(share: float | None) -> Html:
    """Bar of a share in [0, 1], beside a figure and never alone."""
    if share is None or not math.isfinite(share):
        return Html("")
    length = 100 * min(abs(share), 1.0)
    rect = f'<rect class="plain" width="{length:.1f}" height="8"/>'
    return Html(f'<svg class="bar" viewBox="0 0 100 8" aria-hidden="true">{rect}</svg>')


def when(moment: datetime | None) -> Html:
    """Moment in UTC; a dash where it is not known."""
    if moment is None:
        return Html(UNKNOWN)
    utc = moment.astimezone(UTC)
    return Html(f'<time datetime="{utc.isoformat(timespec="seconds")}">{utc:%Y-%m-%d %H:%M} UTC</time>')


def size(count: float | None) -> str:
    """Bytes in B, kB, MB, GB or TB (powers of 1000), to three digits: 999,999 B are 1 MB, not 1e+03 kB."""
    if count is None:
        return UNKNOWN
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        shown = f"{count / factor:.3g}"
        if float(shown) >= 1.0:
            return f"{shown}\u202f{unit}"
    return f"{count:.0f}\u202fB"


def card(title: object, *parts: object) -> Html:
    """A part of a page with its heading."""
    return Html(f'<section class="card"><h2>{escaped(title)}</h2>{joined(parts)}</section>')


def table(
    label: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = (),
    wide: Sequence[int] = (),
) -> Html:
    """Table whose first column names the rows; ``numbers`` are the columns of figures, ``wide`` those of sentences.

    It scrolls by itself where it is wider than its place, also by the keyboard.
    """
    def cell(place: int, value: object) -> str:
        kind = ' class="n"' if place in numbers else ' class="wrap"' if place in wide else ""
        return f"<td{kind}>{escaped(value)}</td>" if place else f'<th scope="row">{escaped(value)}</th>'

    def above(place: int, name: str) -> str:
        kind = ' class="n"' if place in numbers else ""
        return f'<th scope="col"{kind}>{escaped(name)}</th>'

    top = "".join(above(*each) for each in enumerate(columns))
    lines = "\n".join("<tr>" + "".join(cell(*each) for each in enumerate(row)) + "</tr>" for row in rows)
    return Html(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}"><table>'
        f"<thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Names and what belongs to them."""
    lines = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs)
    return Html(f'<dl class="facts">{lines}</dl>')


def paging(path: str, page: int, pages: int) -> Html:
    """Older and newer; nothing where there is one page."""
    newer = f'<a class="button" rel="prev" href="{escaped(path)}?page={page - 1}">Newer</a>' if page > 1 else ""
    older = f'<a class="button" rel="next" href="{escaped(path)}?page={page + 1}">Older</a>' if page < pages else ""
    if not newer and not older:
        return Html("")
    return Html(f'<nav class="actions" aria-label="Pages of the list">{newer}{older}</nav>')


def page(
    title: str, owner: str, body: Html, navigation: Sequence[tuple[str, str]] = (), section: str = "",
    who: object = "",
) -> str:
    """Whole page in the frame that every page has; without navigation it stands alone."""
    def item(link: str, name: str) -> str:
        here = ' aria-current="page"' if link == section else ""
        return f'<li><a href="{escaped(link)}"{here}>{escaped(name)}</a></li>'

    links = "\n".join(item(*each) for each in navigation)
    side = (
        f'<header class="side">\n<a class="brand" href="/"><svg viewBox="0 0 24 24" aria-hidden="true">'
        f'<path d="{_SIGN}"/></svg>Ballast</a>\n<nav aria-label="Console"><ul>\n{links}\n</ul></nav>\n'
        f'<div class="who"><span>{escaped(who)}</span></div>\n</header>\n'
    ) if navigation else ""
    alone = "" if navigation else ' class="alone"'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)} – {escaped(owner)}</title>\n"
        '<link rel="icon" href="/icon.svg" type="image/svg+xml">\n<link rel="stylesheet" href="/console.css">\n'
        f'</head>\n<body{alone}>\n<a class="skip" href="#main">Skip to the content</a>\n{side}'
        f'<main id="main" tabindex="-1">\n{body}\n</main>\n</body>\n</html>\n'
    )

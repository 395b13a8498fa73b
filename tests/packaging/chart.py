"""The chart's documents, rendered without Helm: as much of its templates' language as they use."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "infra" / "helm" / "ballast"
RELEASE = {"Name": "ballast", "Service": "Helm", "Revision": 1}
_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[()|]|:=|=|[^\s()|]+')
Block = list[Any]


def documents(values: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """All that Kubernetes is asked for with the chart's values, of which ``values`` takes some in other words."""
    return copy.deepcopy(_rendered(json.dumps(values or {})))


@cache
def _rendered(values: str) -> list[dict[str, Any]]:
    context = _context(json.loads(values))
    pieces = dict(_pieces())
    texts = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / "templates").glob("*.yaml"))]
    found = [each for text in texts for each in yaml.safe_load_all(_Template(pieces, context).text(_parsed(text)))]
    return [each for each in found if each]


def of_kind(kind: str, values: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
    """Documents of a kind, by their names."""
    return {each["metadata"]["name"]: each for each in documents(values) if each["kind"] == kind}


def pods(values: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
    """What the pods of each part are made of."""
    found = [each["spec"]["template"] for each in documents(values) if "template" in each.get("spec", {})]
    return {each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"] for each in found}


def _context(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    own: dict[str, Any] = copy.deepcopy(yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8")))
    for name, given in values.items():
        own[name] |= given
    about = yaml.safe_load((FOLDER / "Chart.yaml").read_text(encoding="utf-8"))
    named = {name[0].upper() + name[1:]: value for name, value in about.items()}
    return {"Values": own, "Release": RELEASE, "Chart": named}


def _pieces() -> Iterator[tuple[str, Block]]:
    for node in _parsed((FOLDER / "templates" / "_helpers.tpl").read_text(encoding="utf-8")):
        if node[0] == "define":
            yield json.loads(node[1]), node[2]


def _parsed(text: str) -> Block:
    """Nested blocks of a template: texts, and actions with what stands within them."""
    parts = _ACTION.split(text)
    open_blocks: list[Block] = [[]]
    text, rest = parts[0], parts[1:]
    for left, action, right, after in zip(rest[::4], rest[1::4], rest[2::4], rest[3::4], strict=True):
        open_blocks[-1].append(("text", text.rstrip() if left else text))
        word, _, given = action.partition(" ")
        if word in ("range", "with", "if", "define"):
            body: Block = []
            open_blocks[-1].append((word, given, body, []))
            open_blocks.append(body)
        elif word == "else":
            open_blocks.pop()
            open_blocks.append(open_blocks[-1][-1][3])
        elif word == "end":
            open_blocks.pop()
        elif not action.startswith("/*"):
            open_blocks[-1].append(("do", action))
        text = after.lstrip() if right else after
    open_blocks[-1].append(("text", text))
    (top,) = open_blocks
    return top


class _Template:
    """One template, or shared piece, with its variables and what the dot means there."""

    def __init__(self, pieces: Mapping[str, Block], dot: Any) -> None:
        self._pieces = pieces
        self._variables = {"$": dot}

    def text(self, block: Block) -> str:
        return self._block(block, self._variables["$"])

    def _block(self, block: Block, dot: Any) -> str:
        return "".join(self._node(node, dot) for node in block)

    def _node(self, node: Any, dot: Any) -> str:
        kind, said = node[0], node[1]
        if kind == "text":
            return str(said)
        name, sign, told = said.partition(" := ") if " := " in said else said.partition(" = ")
        value = self._value(told if sign else said, dot)
        if sign:
            self._variables[name] = value
        if kind == "do":
            return "" if sign else str(value)
        if kind != "range":
            return self._block(node[2], value if kind == "with" else dot) if value else self._block(node[3], dot)
        made = []
        for each in value:
            self._variables |= {name: each} if sign else {}
            made.append(self._block(node[2], each))
        return "".join(made)

    def _value(self, said: str, dot: Any) -> Any:
        words = _WORD.findall(said)
        value = self._pipe(words, dot)
        assert not words, said
        return value

    def _pipe(self, words: list[str], dot: Any) -> Any:
        piped: list[Any] = []
        while words and words[0] != ")":
            terms: list[Any] = []
            while words and words[0] not in ("|", ")"):
                terms.append(self._term(words, dot))
            first, *others = terms
            piped = [getattr(self, first[1])(*others, *piped) if isinstance(first, tuple) else first]
            if words and words[0] == "|":
                words.pop(0)
        return piped[0]

    def _term(self, words: list[str], dot: Any) -> Any:
        word = words.pop(0)
        if word == "(":
            value = self._pipe(words, dot)
            words.pop(0)
            return value
        if word[0] in '"0123456789':
            return json.loads(word)
        if word[0] not in ".$":
            return ("call", f"_do_{word}")
        name, _, path = word.partition(".")
        value = self._variables[name] if name else dot
        for step in path.split(".") if path else ():
            value = value[step]
        return value

    def _do_include(self, name: str, given: Any) -> str:
        return _Template(self._pieces, given).text(self._pieces[name]).strip("\n")

    def _do_dict(self, *pairs: Any) -> dict[str, Any]:
        return dict(zip(pairs[::2], pairs[1::2], strict=True))

    def _do_list(self, *items: Any) -> list[Any]:
        return list(items)

    def _do_append(self, items: list[Any], item: Any) -> list[Any]:
        return [*items, item]

    def _do_until(self, end: int) -> list[int]:
        return list(range(end))

    def _do_eq(self, one: Any, other: Any) -> bool:
        return bool(one == other)

    def _do_ne(self, one: Any, other: Any) -> bool:
        return bool(one != other)

    def _do_join(self, between: str, items: list[str]) -> str:
        return between.join(items)

    def _do_printf(self, form: str, *given: Any) -> str:
        return form % given

    def _do_quote(self, text: Any) -> str:
        return json.dumps(str(text))

    def _do_toYaml(self, value: Any) -> str:
        return str(yaml.safe_dump(value)).strip()

    def _do_toJson(self, value: Any) -> str:
        return json.dumps(value)

    def _do_fromYaml(self, text: str) -> Any:
        return yaml.safe_load(text)

    def _do_nindent(self, blanks: int, text: str) -> str:
        return "\n" + "\n".join(" " * blanks + line if line else line for line in text.split("\n"))

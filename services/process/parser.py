"""The parser of both commands: what it does not know it tells at the command that was asked, with what was meant."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser whose refusal of a word or an option that it does not know names the one that is near.

    Parsers of its commands are of this kind too; each refuses what it does not know itself, with its own usage, where
    argparse has the outermost parser say so.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parsed arguments and an empty rest; ends with usage and one line where an argument is not known."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            meant = _meant(rest[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
        return found, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = _meant(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{meant}") from None


def _meant(word: str, known: Iterable[str]) -> str:
    from services.contracts.unknown_keys import nearest  # it needs pydantic, which `--help` does not

    near = nearest(word, known)
    return "" if near is None else f"; did you mean {near}?"

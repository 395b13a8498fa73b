"""Scripts by which bash, zsh and fish complete the words of a command: its commands, their actions and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Final

from services.contracts.errors import InvalidInputError


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Script by which a shell completes the words of a command; ``InvalidInputError`` for another shell."""
    if shell not in _SCRIPTS:
        raise InvalidInputError(f"no completion for {shell[:40]!r}; give one of {', '.join(SHELLS)}")
    return _SCRIPTS[shell](parser.prog, dict(_words(parser, "")))


def _bash(command: str, words: dict[str, list[str]]) -> str:
    name = f"_{command.replace('-', '_')}"
    return f"""{name}() {{
{_offered("COMP_WORDS[@]:1:COMP_CWORD-1", words)}
    COMPREPLY=($(compgen -W "${{offered[*]}}" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F {name} {command}
"""


def _zsh(command: str, words: dict[str, list[str]]) -> str:
    """Of zsh's own: its ``bashcompinit`` does not read what bash does."""
    name = f"_{command.replace('-', '_')}"
    return f"""#compdef {command}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
{name}() {{
{_offered("(@)words[2,CURRENT-1]", words)}
    compadd -- $offered || _files
}}
compdef {name} {command}
"""


def _offered(typed: str, words: dict[str, list[str]]) -> str:
    """Lines by which bash and zsh put what may follow the words that were typed into ``offered``.

    The way to the last command among them is ``at``: ``path`` and ``words`` are zsh's own.
    """
    known = "|".join(f'"{path}"' for path in words if path)
    cases = "\n".join(f'        "{path}") offered=({" ".join(offered)});;' for path, offered in words.items())
    return f"""    local at="" next word
    local -a offered
    for word in "${{{typed}}}"; do
        next="${{at:+$at }}$word"
        case "$next" in {known}) at="$next";; esac
    done
    case "$at" in
{cases}
    esac"""


def _fish(command: str, words: dict[str, list[str]]) -> str:
    name = f"__{command.replace('-', '_')}_words"
    cases = "\n".join(f"        case '{path}'\n            printf '%s\\n' {' '.join(offered)}"
                      for path, offered in words.items())
    known = " ".join(f"'{path}'" for path in words if path)
    return f"""function {name}
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        switch "$next"
            case {known}
                set at "$next"
        end
    end
    switch "$at"
{cases}
    end
end
complete -c {command} -a '({name})'
"""


_SCRIPTS: Final[dict[str, Callable[[str, dict[str, list[str]]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
SHELLS: Final = tuple(_SCRIPTS)
"""Shells that there is a script for."""


def _words(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, list[str]]]:
    """Words that may follow a command's path, and so on below it."""
    words: list[str] = []
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001, argparse has no public way to list what a parser takes
        words += action.option_strings
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below |= action.choices
        elif action.choices and not action.option_strings:
            words += [str(choice) for choice in action.choices]
    yield path, [*below, *words]
    for name, inner in below.items():
        yield from _words(inner, f"{path} {name}".strip())

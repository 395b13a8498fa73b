"""``ballast-site key``: show this site's keys, make the next one, and put it in the place of the present one.

The next key is tried at the OEM's server before it takes the present one's place. Each command says what has to be done
at the OEM, to stderr; on stdout is the key.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from services.contracts.errors import UnavailableError
from services.process.command_line import tell
from services.site_agent.settings import SiteSettings
from services.site_agent.setup.key_change import make_next_key, next_seed, use_next_key, waiting_seed


def key_show(chosen: argparse.Namespace) -> int:
    """Print the public key, and to stderr the one that waits."""
    from services.contracts.keys.signing import public_key

    settings = SiteSettings.from_toml(chosen.config)
    waiting = next_seed(settings.nkey_seed)
    key, following = public_key(settings.nkey_seed), public_key(waiting) if waiting.exists() else None
    tell(chosen, {"public_key": key, "next_public_key": following}, key)
    if following is not None:
        entered = _entered(settings.site_id, following)
        _note(f"the next key {following} waits for `ballast-site key use`; before that {entered}")
    return 0


def key_new(chosen: argparse.Namespace) -> int:
    """Make the next key."""
    settings = SiteSettings.from_toml(chosen.config)
    key = make_next_key(settings.nkey_seed)
    tell(chosen, {"next_public_key": key}, key)
    _note(f"the present key stays in use; {_entered(settings.site_id, key)}, then use it here: ballast-site key use")
    return 0


def key_use(chosen: argparse.Namespace) -> int:
    """Put the next key in the place of the present one, once the OEM's server has let it in."""
    settings = SiteSettings.from_toml(chosen.config)
    key = use_next_key(settings.nkey_seed, None if chosen.untried else _try(settings))
    tell(chosen, {"public_key": key}, f"the key is {key} now; restart the agent")
    if chosen.untried:
        _note(
            "the former key is gone, and whether the OEM has this one was not asked; an agent with a key that it does "
            f"not have is not let in, until {_entered(settings.site_id, key)}"
        )
    return 0


def _try(settings: SiteSettings) -> str:
    """Connect with the next key, which this gives.

    A ``BallastError`` says why it cannot be used, and that the present one stays.
    """
    from services.contracts.keys.signing import public_key
    from services.site_agent.connection.link_address import Address, KeyRefusedError, LinkError
    from services.site_agent.connection.trial import try_key

    waiting = waiting_seed(settings.nkey_seed)
    key = public_key(waiting)
    try:
        asyncio.run(try_key(Address.of(settings, waiting)))
    except KeyRefusedError as error:
        raise KeyRefusedError(
            f"the next key was tried, and the present one stays in use: {error}; {_entered(settings.site_id, key)}"
        ) from None
    except (LinkError, UnavailableError) as error:
        raise type(error)(
            f"the next key cannot be tried, and the present one stays in use: {error}; --untried changes it unasked"
        ) from None
    return key


def _entered(site_id: str, key: str) -> str:
    return f"the OEM enters it: ballast site rotate-key {site_id} --key {key}"


def _note(text: str) -> None:
    print(f"ballast-site: note: {text}", file=sys.stderr)

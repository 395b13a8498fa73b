"""A plant makes its next key while the present one works, and changes over when the OEM has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.contracts.errors import NotFoundError
from services.contracts.keys.signing import new_seed_file, public_key
from services.site_agent.setup.key_change import make_next_key, next_seed, use_next_key


def test_the_next_key_waits_beside_the_present_one_and_takes_its_place(tmp_path: Path) -> None:
    seed = tmp_path / "site.nk"
    present = new_seed_file(seed)
    waiting = make_next_key(seed)
    assert (public_key(seed), make_next_key(seed)) == (present, waiting) and waiting != present
    assert next_seed(seed).stat().st_mode & 0o077 == 0
    assert use_next_key(seed) == waiting == public_key(seed)
    assert not next_seed(seed).exists() and seed.stat().st_mode & 0o077 == 0
    with pytest.raises(NotFoundError, match="`ballast-site key new` makes one"):
        use_next_key(seed)
    assert public_key(seed) == waiting

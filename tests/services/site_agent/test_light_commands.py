"""What a command loads: the methods and the link are for who trains, not for who looks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.site_agent.cli import main


@pytest.mark.parametrize(("words", "heavy"), [
    (("key", "show"), "numpy scipy nats services.site_agent.agent"),
    (("health",), "numpy scipy nats services.site_agent.agent"),
    (("ledger", "verify"), "numpy scipy nats services.site_agent.agent"),
    (("exposure",), "scipy nats models.methods.catalogue services.site_agent.door"),
    (("drift",), "scipy nats models.methods.catalogue services.site_agent.door"),
    (("check",), "scipy nats services.site_agent.door"),
])
def test_what_needs_neither_link_nor_methods_imports_little(
    tmp_path: Path, asset_type_file: Path, make_table: Any, write_csv: Callable[..., Path],
    words: tuple[str, ...], heavy: str,
) -> None:
    """A supervisor asks for health every few seconds."""
    data = ["--asset-type", str(asset_type_file), "--data", str(write_csv(make_table(60)))]
    assert main(["init", "--site-id", "plant-1", "--dir", str(tmp_path / "home"), *data]) == 0
    asked = [*words, "--config", str(tmp_path / "home" / "site.toml")]
    program = (
        f"import sys\nfrom services.site_agent.cli import main\nmain({asked!r})\n"
        f"sys.exit(', '.join(set({heavy.split()!r}) & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

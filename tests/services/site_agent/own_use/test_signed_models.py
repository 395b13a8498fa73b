"""Which model a plant diagnoses with: the one that the OEM signed, as it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.keys.signing import new_seed_file, public_key
from services.site_agent.cli import main


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signature": ""}, "is not signed"),
        ({"signature": "AAAA"}, "changed after the OEM signed it"),
        ({"certified_gap": 1e-4}, "changed after the OEM signed it"),
        ({"weights": [[4.0, 3.0, -0.5, -3.5]]}, "changed after the OEM signed it"),
        ({"certificate_sha256": "0" * 64}, "changed after the OEM signed it"),
        ({"signed_by": "UBAD"}, "is signed by UBAD, not by the OEM's key"),
    ],
)
def test_a_model_that_the_oem_did_not_sign_as_it_stands_is_refused(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, change: dict[str, Any],
    words: str, capsys: pytest.CaptureFixture[str],
) -> None:
    model_file.write_text(json.dumps({**json.loads(model_file.read_text()), **change}))
    arguments = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3)))]
    assert main([*arguments, "--oem-key", oem[1]]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
    assert main([*arguments, "--unsigned"]) == 0, "only where the plant says that nothing is to be checked"


def test_a_model_of_another_signer_is_refused_and_so_is_one_that_nobody_can_check(
    model_file: Path, write_csv: Callable[..., Path], make_table: Any, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3)))]
    assert main([*arguments, "--oem-key", new_seed_file(tmp_path / "other.nk")]) == 1
    assert "not by the OEM's key" in capsys.readouterr().err
    assert main(arguments) == 1
    assert "give --oem-key" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--unsigned", "--oem-key", public_key(tmp_path / "other.nk")])
    assert ended.value.code == 2 and "not allowed with argument" in capsys.readouterr().err, "nothing would be checked"
    assert main([*arguments, "--oem-key", "nonsense"]) == 1
    assert "not a NATS user public key" in capsys.readouterr().err


def test_the_key_that_is_given_goes_before_the_one_in_the_settings(
    model_file: Path, oem: tuple[Path, str], write_csv: Callable[..., Path], make_table: Any, tmp_path: Path
) -> None:
    other, settings = new_seed_file(tmp_path / "other.nk"), tmp_path / "site.toml"
    ask = ["diagnose", "--model", str(model_file), "--input", str(write_csv(make_table(3))), "--config", str(settings)]
    for kept, given, code in ((other, oem[1], 0), (oem[1], other, 1)):
        settings.write_text(
            f'site_id = "p"\nservers = ["nats://a:1"]\noem_key = "{kept}"\n[data]\nkind = "csv"\npath = "x.csv"\n'
        )
        assert main([*ask, "--oem-key", given]) == code

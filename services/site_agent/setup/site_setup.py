"""``ballast-site init``: makes the folder of a new site, with its key, its policy and its settings."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from services.contracts.access.enrolment import EnrolmentPackage
from services.contracts.errors import ConflictError, InvalidInputError
from services.contracts.keys.signing import new_seed_file, public_key
from services.contracts.machines.asset_type import AssetType
from services.contracts.reading import explain
from services.contracts.toml_text import to_toml
from services.site_agent.rules.method_names import check_method_names
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.rules.policy_file import default_policy_text
from services.site_agent.settings import DEFAULT_SERVER, SiteSettings

SETTINGS, POLICY, SEED, ASSET_TYPE = "site.toml", "policy.toml", "site.nk", "asset_type.toml"
AUTHORITY = "ca.pem"
KINDS = {".csv": "csv", ".txt": "csv", ".tsv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True)
class SiteSetup:
    """What is asked of ``init``. ``data`` is a simulator's plant folder, a CSV file or a Parquet file.

    ``methods`` are those that the policy allows; empty: all. ``oem_key``: by it the OEM signs tasks and versions.
    ``own_scores`` and ``seen_alone``: whether the policy releases the site's own scores in runs on sums, and its own
    answers in runs that are not. ``figures``: whether it tells the drift of its readings and its exposure.
    ``package``: what the OEM's server gave at the enrolment, in the place of ``asset_type``, ``servers``, ``authority``
    and ``oem_key``; ``seed``: the key that it knows, which is moved into the folder. ``proxy`` and ``proxy_auth`` stand
    in the settings where the servers are WebSockets, for nothing else goes through a proxy.
    """

    site_id: str
    folder: Path
    asset_type: Path | None = None
    data: Path | None = None
    servers: tuple[str, ...] = (DEFAULT_SERVER,)
    authority: Path | None = None
    methods: tuple[str, ...] = ()
    oem_key: str | None = None
    own_scores: bool = False
    seen_alone: bool = False
    figures: bool = False
    package: EnrolmentPackage | None = None
    seed: Path | None = None
    proxy: str | None = None
    proxy_auth: Path | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Servers of the plant link, as the settings name them."""
        return self.servers if self.package is None else self.package.servers

    @property
    def goes_by_proxy(self) -> bool:
        """Whether the plant link goes through the proxy."""
        return self.proxy is not None and all(server.startswith("wss://") for server in self.addresses)


def create_site(setup: SiteSetup) -> str:
    """Write key, settings, policy and a copy of the asset type; return the public key to give to the OEM.

    ``ConflictError`` where one of the files is there already, ``InvalidInputError`` where the site id, the asset type,
    an address, a method's name or the folder does not fit; nothing was written then.
    """
    texts = check_setup(setup)
    written: list[Path] = []
    try:
        setup.folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            path = setup.folder / name
            if setup.seed is not None:  # what of it an enrolment wrote that was interrupted
                path.unlink(missing_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
        if setup.seed is None:
            return new_seed_file(setup.folder / SEED)
        setup.seed.replace(setup.folder / SEED)
        return public_key(setup.folder / SEED)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise InvalidInputError(f"cannot write to {setup.folder}: {error.strerror}") from None


def check_setup(setup: SiteSetup, *more: str) -> dict[str, str]:
    """Text of each file but the key's; raises as :func:`create_site` does, also for ``more`` files; writes nothing.

    Where the key of an enrolment waits, files may be there that it wrote, whole or in part, before it was interrupted.
    """
    texts = _texts(setup)
    for name in (*texts, *more, SEED):
        path = setup.folder / name
        if path.exists() and not (setup.seed is not None and name != SEED and _may_go_on(setup, path, texts)):
            raise ConflictError(f"{path} exists already; nothing is overwritten")
    return texts


def _may_go_on(setup: SiteSetup, path: Path, texts: dict[str, str]) -> bool:
    """Whether a file is what an interrupted enrolment wrote; before the OEM's package is there nobody knows that."""
    return setup.package is None or (path.is_file() and texts[path.name].encode().startswith(path.read_bytes()))


def _texts(setup: SiteSetup) -> dict[str, str]:
    """Text of each file but the key's, held to the types that will read them."""
    check_method_names(setup.methods)
    asset_type = AssetType.from_toml(setup.asset_type) if setup.asset_type else None
    if setup.package is not None:
        asset_type = setup.package.asset_type
    settings = _settings_text(setup, asset_type)
    policy = default_policy_text(
        (asset_type.name,) if asset_type else (), setup.methods, own_scores=setup.own_scores,
        seen_alone=setup.seen_alone, figures=setup.figures,
    )
    try:
        SiteSettings.model_validate(tomllib.loads(settings))
        SitePolicy.model_validate(tomllib.loads(policy))
    except ValidationError as error:
        raise InvalidInputError(explain(error)) from None
    texts = {SETTINGS: settings, POLICY: policy}
    if setup.asset_type is not None:
        texts[ASSET_TYPE] = setup.asset_type.read_text(encoding="utf-8-sig")
    if setup.package is not None:
        texts[ASSET_TYPE] = to_toml(setup.package.asset_type)
        if setup.package.authority is not None:
            texts[AUTHORITY] = setup.package.authority
    return texts


def _settings_text(setup: SiteSetup, asset_type: AssetType | None) -> str:
    package = setup.package
    authority = Path(AUTHORITY) if package is not None and package.authority is not None else None
    if package is None and setup.authority is not None:
        authority = _reference(setup.authority, setup.folder)
    key = setup.oem_key if package is None else package.oem_key
    ca = f"ca = {_quoted(authority)}" if authority else '# ca = "ca.pem"'
    oem_key = f"oem_key = {_quoted(key)}" if key else '# oem_key = "U..."'
    return f"""# Settings of the site agent. Paths are relative to this file.
site_id = {_quoted(setup.site_id)}
servers = [{", ".join(_quoted(server) for server in setup.addresses)}]
{_proxy_text(setup)}
# Certificate of the OEM's authority; without it the system's authorities are asked.
{ca}
# Public key of the OEM (`ballast site oem-key` there): a task that it did not sign is not answered, a version not used.
{oem_key}
nkey_seed = "{SEED}"
asset_type = "{ASSET_TYPE}"
policy = "{POLICY}"
ledger = "ledger.jsonl"
log = "site.log"

{_data_text(setup, asset_type)}"""


def _proxy_text(setup: SiteSetup) -> str:
    if not setup.goes_by_proxy:
        return ""
    text = f"# The way to them: an HTTP proxy that knows CONNECT.\nproxy = {_quoted(setup.proxy)}\n"
    if setup.proxy_auth is None:
        return text
    return f"{text}proxy_auth = {_quoted(_reference(setup.proxy_auth, setup.folder))}\n"


def _data_text(setup: SiteSetup, asset_type: AssetType | None) -> str:
    data = setup.data if setup.data is not None else setup.folder / "data.csv"
    kind = KINDS.get(data.suffix.lower(), "simulator")
    if kind == "simulator" and data.is_file():
        raise InvalidInputError(
            f"{data.name} is no table that is read here: save it as CSV in UTF-8 or as Parquet ({', '.join(KINDS)})"
        )
    text = f'[data]\nkind = "{kind}"\npath = {_quoted(_reference(data, setup.folder))}\n'
    if kind == "simulator":
        return text
    text += """label_column = "label"
# The number that a regression learns; without the line it is the column of the target's name.
# target_column = "target"
# A column that holds 'train' or 'test'; without it a fraction of each class is held out, chosen by the seed.
# split_column = "split"
# Or a column of the machine that a row is of: whole machines are held out; or of the time: the last rows are. A
# tuning keeps whole machines, or blocks of time, together in its folds; beside split_column it is this alone.
# machine_column = "machine"
# time_column = "taken_at"
test_fraction = 0.25
seed = 0

# Feature = column, where the column has another name than the feature.
[data.columns]

# The plant's own word = class of the asset type.
[data.labels]

# Unit of each feature's column. It must be the contract's: a file in other units has to be converted first.
[data.units]
"""
    if asset_type is not None:
        text += "".join(f"{feature.name} = {_quoted(feature.unit)}\n" for feature in asset_type.features)
        if asset_type.target is not None:
            text += f"{asset_type.target.name} = {_quoted(asset_type.target.unit)}\n"
    return text


def _quoted(text: object) -> str:
    """Text as a TOML string, which JSON's escapes fit."""
    return json.dumps(str(text), ensure_ascii=False)


def _reference(path: Path, folder: Path) -> Path:
    """Path as the settings name it: relative where it lies in the site's folder, else absolute.

    Links stay links: where one is led to the next file (``current.csv``), the agent goes with it.
    """
    full, home = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    if os.path.realpath(full) != os.path.realpath(path):  # a ``..`` behind a link
        return path.absolute()
    return full.relative_to(home) if full.is_relative_to(home) else full

"""The door over the asset type that the plant's file holds now.

A newer version of the asset type comes to the plant as a file. It is looked at before every task and every few seconds,
and read as at the agent's start; where it fits, the door is opened anew over it, and the records of what was answered
go on. A file that does not fit changes nothing: the agent stays with the version that it has, and says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.site_agent.door.local_round import LocalRound
from services.site_agent.file_stamp import file_stamp
from services.site_agent.logs import LOG, PRIVATE

LOOK_SECONDS: Final = 5.0  # between two looks at the folder
Opening = Callable[[AssetType], LocalRound]


class WatchedRound:
    """The door, and the asset type of which it is.

    ``open_door`` opens it over an asset type. :class:`InvalidInputError` where the file does not fit at the start.
    """

    def __init__(self, path: Path, open_door: Opening) -> None:
        self._path, self._open_door = path, open_door
        self._at_work = threading.Lock()
        self._stamp = file_stamp(path)
        self.asset_type = AssetType.from_toml(path)
        self.problem, self._closed = "", False
        self._door = open_door(self.asset_type)

    @property
    def told(self) -> str:
        """Which version is used, and why not the one in the file where that does not fit; without what it holds."""
        used = f"asset type {self.asset_type.name} version {self.asset_type.version}"
        return f"{used}; {self.problem}" if self.problem else used

    def answer(self, task_frame: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Answer of the door over the asset type as the file has it now."""
        with self._at_work:
            self._take_newer()
            return self._door.answer(task_frame, headers)

    def look(self) -> None:
        """Take what the file holds, if no task is worked on; before the next one it is looked at anyway."""
        if self._at_work.acquire(blocking=False):
            try:
                self._take_newer()
            finally:
                self._at_work.release()

    async def watch(self, seconds: float = LOOK_SECONDS) -> None:
        """Look again and again, for ever."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self.look)
            except BallastError as error:  # the next task tries again, and ends the agent where it is so still
                LOG.warning("the door could not be opened over the newer asset type: %s", error)

    def warm_up(self) -> None:
        """Read the data before the first task asks."""
        with self._at_work:
            self._door.warm_up()

    def close(self) -> None:
        """Let go of the records, after the task that is worked on."""
        with self._at_work:
            self._closed = True
            self._door.close()

    def _take_newer(self) -> None:
        """Open the door anew where the file has changed and fits."""
        stamp = file_stamp(self._path)
        if self._closed or stamp == self._stamp:
            return
        former_stamp, self._stamp = self._stamp, stamp
        try:
            found = AssetType.from_toml(self._path)
        except InvalidInputError as error:
            self.problem = "the file that is there now does not fit, and is not used"
            LOG.warning("still %s", self.told)
            PRIVATE.warning("%s", error)
            return
        self.problem = ""
        if found.fingerprint == self.asset_type.fingerprint:
            return
        former, self.asset_type = self.asset_type, found
        self._door.close()
        try:
            self._door = self._open_door(found)
        except BallastError:
            self.asset_type, self._stamp = former, former_stamp
            raise
        LOG.info("%s now; it was version %d of %s", self.told, former.version, former.name)
        self._door.warm_up()

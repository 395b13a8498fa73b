"""At the plant link beside the service: an ear on all answers, false tasks, and false answers under a plant's key."""

from __future__ import annotations

import asyncio
import random
import ssl
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats

from services.contracts.wire.codec import digest
from services.contracts.wire.roll import WORDS
from services.process.log_filters import silence_link_libraries

MOST_FRAMES = 20_000


class Ear:
    """Hears what every plant answers, with the coordinator's key, and speaks what nobody should believe."""

    def __init__(self, server: str, seed: Path, authority: Path, draw: random.Random) -> None:
        self.frames: dict[str, bytes] = {}
        self._server, self._seed, self._draw = server, seed, draw
        self._context = ssl.create_default_context(cafile=str(authority))
        self._loop = asyncio.new_event_loop()
        self._client: Any = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        silence_link_libraries()
        self._thread.start()
        self._call(self._listen()).result(30)

    def close(self) -> None:
        """Leave the plant link."""
        with suppress(Exception):
            self._call(self._client.close()).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def false_tasks(self, site: str, count: int = 20) -> None:
        """Say to a plant what is no task: random bytes, frames cut short, frames of others with a changed bit."""
        said = [self._falsified() for _ in range(count)]

        async def speak() -> None:
            for frame in said:
                with suppress(Exception):
                    await self._client.publish(f"site.{site}.task", frame, reply="_COORD.chaos")

        self._call(speak())

    def false_answers(self, site: str, seed: Path, seconds: float) -> None:
        """Answer for so long under a plant's key, besides the plant, with what is no answer to what was asked."""

        async def answer(message: Any) -> None:
            if message.reply and message.data not in WORDS:
                with suppress(Exception):
                    await message.respond(self._falsified())

        async def pretend() -> None:
            with suppress(Exception):
                client = await asyncio.wait_for(self._connect(seed), 5)
                try:
                    await client.subscribe(f"site.{site}.task", cb=answer)
                    await asyncio.sleep(seconds)
                finally:
                    await client.close()

        self._call(pretend())

    def _call(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _connect(self, seed: Path) -> Any:
        async def heed(_: Exception) -> None: ...

        return await nats.connect(
            servers=[self._server], tls=self._context, nkeys_seed=str(seed), max_reconnect_attempts=-1,
            reconnect_time_wait=0.1, error_cb=heed,
        )

    async def _listen(self) -> None:
        async def hear(message: Any) -> None:
            if message.data and len(self.frames) < MOST_FRAMES:  # empty: the server says that nobody hears
                self.frames.setdefault(digest(message.data), bytes(message.data))

        self._client = await self._connect(self._seed)
        await self._client.subscribe("_COORD.>", cb=hear)

    def _falsified(self) -> bytes:
        known = list(self.frames.values())[-50:]
        if not known or self._draw.random() < 0.2:
            return self._draw.randbytes(self._draw.choice((0, 1, 7, 400)))
        frame = bytearray(self._draw.choice(known))
        how = self._draw.randrange(3)
        if how == 0:
            return bytes(frame[: self._draw.randrange(len(frame))])
        if how == 1:
            frame[self._draw.randrange(len(frame))] ^= 1 << self._draw.randrange(8)
        return bytes(frame)  # unchanged: an answer to another question

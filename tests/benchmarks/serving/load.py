"""A closed loop of requests over a number of connections that stay open: bytes in, bytes out, nothing parsed between.

Both servers are driven by this same loop. It is no HTTP library on purpose: a client that costs more than the server
measures itself.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Target:
    """A server by its name, where it listens, and one whole request to it."""

    name: str
    port: int
    request: bytes


@dataclass(frozen=True)
class Load:
    """What a loop found: seconds of each request, and of all together."""

    seconds: list[float]
    elapsed: float

    @property
    def per_second(self) -> float:
        """Requests answered in a second."""
        return len(self.seconds) / self.elapsed

    def milliseconds(self, quantile: float) -> float:
        """Time of a request that a share ``quantile`` of them stays below."""
        return 1e3 * float(np.quantile(self.seconds, quantile))


def request(port: int, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """Bytes of a POST request."""
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()] + [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


async def closed_loop(
    target: Target, connections: int, seconds: float, rate: float | None = None, request: bytes | None = None
) -> Load:
    """Drive a server for a time; each connection sends its next request when the last one is answered.

    With a ``rate`` all together send no more than that many a second: each at its own fixed times, and a request that
    had to wait for the one before it counts its waiting too.
    """
    found: list[float] = []
    sent = request or target.request
    started = time.perf_counter()
    until = started + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=2**26)
        step = 0.0 if rate is None else connections / rate
        due = started + step * number / connections
        while (now := time.perf_counter()) < until:
            if rate is not None:
                await asyncio.sleep(max(0.0, due - now))
            begun = time.perf_counter() if rate is None else due
            await ask(reader, writer, sent)
            found.append(time.perf_counter() - begun)
            due += step
        writer.close()

    await asyncio.gather(*(client(number) for number in range(connections)))
    return Load(found, time.perf_counter() - started)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> bytes:
    """Body of the answer to a request; ``RuntimeError`` where it is not 200."""
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if b"content-length:" in lower:
        length = int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        body = await reader.readexactly(length)
    else:
        body = b""
        while (size := int(await reader.readline(), 16)) > 0:
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the server answered {head[:40]!r}: {body[:300]!r}")
    return body

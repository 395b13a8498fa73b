"""The plant link as a WebSocket, for plants whose firewall lets nothing out but HTTPS; through an HTTP proxy too.

The TLS is that between plant and server, by the OEM's certificate: a proxy sees the name of the server (``CONNECT``)
and sealed bytes. One that opens TLS and seals it anew with a certificate of its own is refused like any other server.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import ParseResult

import aiohttp  # noqa: F401  (the library's transport needs it: without it this import fails, and `link` says so)
from nats.aio.transport import WebSocketTransport

from services.process.nats_client import NatsClient
from services.site_agent.http_proxy import HttpProxy


class WebSocketClient(NatsClient):
    """Client of servers that are written ``wss://host:port``."""

    def __init__(self, proxy: str | None = None, proxy_auth: Path | None = None) -> None:
        super().__init__()
        self._transport: Any = None
        self._way: dict[str, Any] = {}
        if proxy is not None:
            self._way = {"proxy": proxy, "proxy_headers": HttpProxy.of(proxy, proxy_auth).headers}

    async def _connect_to_server(self, server: Any) -> None:
        if not self._transport:
            self._transport = _Transport(self._way)
        await super()._connect_to_server(server)


class _Transport(WebSocketTransport):  # type: ignore[misc]
    """The library's, with a proxy, and a limit of time on the whole way to the server."""

    def __init__(self, way: dict[str, Any]) -> None:
        super().__init__()
        self._way = way

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        await self._open(uri.geturl(), connect_timeout)
        self._using_tls = False

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        if self._using_tls:
            return  # what the server says of TLS comes after it
        if self._ws is not None and not self._ws.closed:
            raise ConnectionError("the server asks for TLS: its address is written wss://")
        await self._open(uri if isinstance(uri, str) else uri.geturl(), connect_timeout, ssl=ssl_context)
        self._using_tls = True

    async def _open(self, address: str, seconds: float, **more: Any) -> None:
        async with asyncio.timeout(seconds):
            self._ws = await self._client.ws_connect(address, max_msg_size=0, **more, **self._way)

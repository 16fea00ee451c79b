"""Uses the tools with the Python client of the protocol. Run by the test `python`, on standard streams or over HTTP."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TOOLS = ["fetch", "map", "explain", "find_in_archive"]


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    return content.text, bool(result.is_error)


async def use(server: Any, mode: str, expected: str) -> None:
    async with Client(server, mode=mode) as client:
        assert client.server_info.name == "fetchwell", client.server_info
        assert client.protocol_version >= expected, client.protocol_version
        assert "untrusted" in client.instructions, client.instructions
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == TOOLS, listed
        if mode == "legacy":
            await client.send_ping()

        text, is_error = await call(client, "fetch", url="http://pages.test/one")
        assert not is_error and "quick brown fox" in text and "UNTRUSTED" in text, text
        text, is_error = await call(client, "fetch", url="http://pages.test/gone")
        assert is_error and "404" in text, text
        text, is_error = await call(client, "explain", url="http://pages.test/one")
        assert not is_error and '"allowed": true' in text, text
        pages = [call(client, "fetch", url=f"http://pages.test/{n}", max_length=500) for n in range(3)]
        for text, is_error in await asyncio.gather(*pages):
            assert not is_error, text
        try:
            await client.call_tool("crawl", {})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError("there is no such tool")


async def main() -> None:
    match sys.argv[1:]:
        case ["stdio", server]:
            parameters = StdioServerParameters(**json.loads(server))
            for mode, expected in [("auto", "2026-07-28"), ("legacy", "2025-06-18")]:
                await use(parameters, mode, expected)
        case ["http", url, token]:
            for mode, expected in [("auto", "2026-07-28"), ("legacy", "2025-06-18")]:
                headers = {"Authorization": f"Bearer {token}"}
                async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                    await use(streamable_http_client(url, http_client=http), mode, expected)
    print("all held")


asyncio.run(main())

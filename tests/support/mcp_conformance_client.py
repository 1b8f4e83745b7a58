"""Our MCP client as the official conformance suite starts it: `… SERVER_URL`.

Not a test: it does what a host would do with a server, list and call its tools, and answers for the
user. `MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_CONTEXT` come from the suite.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import httpx

from kode_sidecar.infrastructure.mcp.contracts import NO_ACCESS, McpHost, McpTool, ServerConfig
from kode_sidecar.infrastructure.mcp.oauth import OAuth, TokenFile
from kode_sidecar.infrastructure.mcp.server import Server
from kode_sidecar.infrastructure.mcp.server_store import RememberedLists

Json = dict[str, Any]
SAMPLES = {"number": 5, "integer": 5, "string": "x", "boolean": True, "array": [], "object": {}}


async def visit(address: str) -> str:
    """A user who agrees to everything, without a browser."""
    async with httpx.AsyncClient(trust_env=False) as http:
        response = await http.get(address)
        return response.headers["location"]


async def elicit(_message: str, schema: Json) -> Json:
    """A user who takes what is offered."""
    properties = schema.get("properties", {})
    return {name: one["default"] for name, one in properties.items() if "default" in one}


def arguments(tool: McpTool, tools: tuple[McpTool, ...]) -> Json:
    """What the tool asks for; the suite's echo tool wants the schema of the first one back."""
    properties = tool.input_schema.get("properties", {})
    if tool.name == "json_schema_echo":
        return {"schema": tools[0].input_schema}
    return {name: SAMPLES.get(one.get("type"), "x") for name, one in properties.items()}


async def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    known = {key: context[key] for key in ("client_id", "client_secret") if key in context}
    client = {**known, "client_metadata_url": "https://conformance-test.local/client-metadata.json"}
    config = ServerConfig("suite", url=sys.argv[-1], login_hosts=("localhost",))
    redirect = "http://localhost:3000/callback"
    login = OAuth(config, TokenFile(None), visit, redirect_uri=redirect, client=client)
    server = Server(
        config,
        McpHost(elicit=elicit),
        RememberedLists(None),
        environment={},
        now=time.monotonic,
        access=(NO_ACCESS[0], login.authorize),
    )
    try:
        tools = (await server.listing()).tools
        if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "json-schema-ref-no-deref":
            return  # its tool is to be listed only
        calls = context.get("toolCalls") or [
            {"name": tool.name, "arguments": arguments(tool, tools)} for tool in tools
        ]
        for call in calls:
            await server.call(call["name"], call["arguments"])
    finally:
        await server.close()


if __name__ == "__main__":
    asyncio.run(main())

"""An agent's long session, and an MCP client that reads what left its prompt through `compact mcp`.

pip install "compact-context[mcp]"
python mcp_server.py
"""

import asyncio
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters

from compact import CompactConfig, CompactManager
from compact.testing import tool_run, user

STORE = "sqlite:///agent.db"
FACT = "The harbour master is called Ilvany."

with CompactManager(CompactConfig(max_context_tokens=8_000, state={"url": STORE})) as manager:
    manager.preflight("voyage", [user(FACT), *tool_run(40, words=300), user("Go on.")])


async def main() -> None:
    """Ask what an agent would ask."""
    command = ["-m", "compact.cli.main", "mcp", "--store", STORE]
    server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(server) as client:

        async def ask(tool: str, **arguments: Any) -> str:
            result: Any = await client.call_tool(tool, arguments)
            return result.content[0].text

        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        print("recall found it:", FACT in await ask("recall", query="Who is the harbour master?"))
        print("why:", (await ask("why", phrase="result-3 ")).splitlines()[0])
        print(await ask("status"))


asyncio.run(main())

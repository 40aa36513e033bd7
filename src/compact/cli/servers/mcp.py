"""`compact mcp`: a server over standard input and output, by which an agent reads what left its prompt."""

from __future__ import annotations

from typing import Annotated

import typer

from compact.cli.options import ConfigFile, Store

OneSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="The only session that can be read; by default all, and the newest if none is named.",
    ),
]


def mcp(session: OneSession = None, store: Store = None, config: ConfigFile = None) -> None:
    """Serve recall, why and status to an agent over MCP.

    Name this command in the agent's settings: it is started by the agent, and speaks the Model Context Protocol over
    standard input and output. It reads the store that the agent's Compact writes to, and writes nothing.
    """
    try:
        from compact.cli.servers.mcp_tools import build_server
    except ModuleNotFoundError as error:
        raise _missing_package(error) from None
    build_server(config, store, session).run("stdio")


def _missing_package(error: ModuleNotFoundError) -> Exception:
    from compact.core.errors import ConfigError
    from compact.extras import install_line

    return ConfigError(f"the MCP server needs the package {error.name}", hint=install_line("mcp"))

"""`compact proxy`: compacts between an agent that cannot be changed and its provider."""

from __future__ import annotations

from typing import Annotated

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile, Model, Store, Window
from compact.cli.servers.agent_setup import ProxiedAgent, setup_of
from compact.cli.settings import load_agent_config
from compact.core.errors import ConfigError

PORT = 5176

Upstream = Annotated[
    str | None, typer.Option("--upstream", metavar="URL", help="The provider, for example https://api.openai.com.")
]
Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="The address to listen on; one that other machines can reach needs a token."
    ),
]
Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to listen on; 0 takes a free one.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="COMPACT_PROXY_TOKEN",
        show_envvar=False,
        help="The token that agents send as X-Compact-Token; COMPACT_PROXY_TOKEN is safer: others cannot read it.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.1, help="How long to wait for the provider; no limit by default."
    ),
]
MaxSessionsPerKey = Annotated[
    int,
    typer.Option(
        "--max-sessions-per-key",
        metavar="N",
        min=1,
        help="The sessions that one API key has in memory; those used longest ago are read from the store again.",
    ),
]
Agent = Annotated[
    ProxiedAgent | None,
    typer.Option("--agent", help="Print what to set so that this agent uses the proxy, and start nothing."),
]
MaxBody = Annotated[
    int, typer.Option("--max-body-mb", metavar="N", min=1, help="Larger requests are passed on without compaction.")
]

Recall = Annotated[
    bool,
    typer.Option(
        "--recall/--no-recall",
        help="Offer the model the recall tool from the first compaction on, and answer its calls here.",
    ),
]


def proxy(
    upstream: Upstream = None,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    token: Token = "",
    config: ConfigFile = None,
    model: Model = None,
    window: Window = None,
    store: Store = None,
    timeout: Timeout = None,
    max_body_mb: MaxBody = 64,
    max_sessions_per_key: MaxSessionsPerKey = 200,
    agent: Agent = None,
    recall: Recall = True,
) -> None:
    """Run a proxy that compacts between an agent and its provider.

    Set its address as the provider's base URL in the agent; --agent prints how. Conversations in the requests of
    OpenAI, Anthropic, Gemini, Bedrock and Ollama are compacted at the trigger; everything else is passed on unchanged.
    API keys are passed on and never stored. The header X-Compact of each response says what was done. Stop it with
    Ctrl-C.
    """
    from compact.proxy.settings import ProxySettings

    if agent:
        _print_setup(agent, _address(host, port), upstream, has_token=bool(token))
        return
    if not upstream:
        raise ConfigError("Missing option '--upstream'", hint="name the provider, as in https://api.openai.com")
    settings = ProxySettings(
        upstream=upstream,
        host=host,
        port=port,
        token=token,
        timeout_seconds=timeout,
        max_body_bytes=max_body_mb * 1_000_000,
        max_sessions_per_key=max_sessions_per_key,
        recall=recall,
    )
    loaded = load_agent_config(config, model=model, window=window, store=store)
    try:
        from compact.proxy.app import ProxyApp
        from compact.proxy.server import listen, serve
    except ModuleNotFoundError as error:
        raise _missing_package(error) from None
    with listen(settings) as listener:
        app = ProxyApp(settings, loaded)
        serve(app, listener, ready=lambda: _print_address(settings.host, listener.getsockname()[1], upstream))


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _print_setup(agent: ProxiedAgent, address: str, upstream: str | None, *, has_token: bool) -> None:
    """Print lines to paste, as plain text wherever they go."""
    setup = setup_of(agent, address, has_token=has_token)
    port = address.rpartition(":")[2]
    moved = "" if port == str(PORT) else f" --port {port}"
    typer.echo(setup.text(f"compact proxy --upstream {upstream or setup.upstream}{moved}"))


def _print_address(host: str, port: int, upstream: str) -> None:
    here = _address(host, port)
    screen.notice(f"{here} passes on to {upstream}; Ctrl-C stops")
    screen.notice(f"OPENAI_BASE_URL={here}/v1 or ANTHROPIC_BASE_URL={here} connects an agent; --agent prints more")


def _missing_package(error: ModuleNotFoundError) -> Exception:
    from compact.extras import install_line

    message = f"the proxy needs the package {error.name}, which is not installed"
    return ConfigError(message, hint=install_line("proxy"))

"""`compact proxy`: compacts between an agent that cannot be changed and its provider."""

from __future__ import annotations

from typing import Annotated

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile, Model, Store, Window
from compact.cli.settings import load_agent_config

Upstream = Annotated[
    str, typer.Option("--upstream", metavar="URL", help="The provider, for example https://api.openai.com.")
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
    upstream: Upstream,
    host: Host = "127.0.0.1",
    port: Port = 5176,
    token: Token = "",
    config: ConfigFile = None,
    model: Model = None,
    window: Window = None,
    store: Store = None,
    timeout: Timeout = None,
    max_body_mb: MaxBody = 64,
    recall: Recall = True,
) -> None:
    """Run a proxy that compacts between an agent and its provider.

    Set its address as the provider's base URL in the agent. Requests of Chat Completions, Responses and Anthropic
    Messages are compacted at the trigger; everything else is passed on unchanged. API keys are passed on and never
    stored. The header X-Compact of each response says what was done. Stop it with Ctrl-C.
    """
    from compact.proxy.settings import ProxySettings

    settings = ProxySettings(
        upstream=upstream,
        host=host,
        port=port,
        token=token,
        timeout_seconds=timeout,
        max_body_bytes=max_body_mb * 1_000_000,
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


def _print_address(host: str, port: int, upstream: str) -> None:
    here = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    screen.notice(f"{here} passes on to {upstream}; Ctrl-C stops")
    screen.notice(f"OPENAI_BASE_URL={here}/v1 or ANTHROPIC_BASE_URL={here} connects an agent")


def _missing_package(error: ModuleNotFoundError) -> Exception:
    from compact.core.errors import ConfigError
    from compact.extras import install_line

    message = f"the proxy needs the package {error.name}, which is not installed"
    return ConfigError(message, hint=install_line("proxy"))

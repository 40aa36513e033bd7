"""Build the sinks that a configuration asks for; a third-party package is loaded only where its exporter is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from compact.core.errors import ConfigError
from compact.extras import install_line
from compact.telemetry.emitters import AnySink, Dispatcher
from compact.telemetry.event_archive import ArchiveExporter, EventArchive
from compact.telemetry.log import ConsoleEmitter
from compact.telemetry.worker import ExportWorker

Redact = Callable[[Any], Any]
# Chosen: what a person waits for when a program ends; an archive far away takes longer than a viewer.
_ARCHIVE_CLOSE_SECONDS = 10.0
# The module that an exporter imports, and the package that has it.
_OTLP_PACKAGES = {
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
}
_AGENTS_PACKAGES = {"agents.tracing": "openai-agents"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The settings of `telemetry` that exporters need."""

    exporters: Sequence[str] = ()
    ariadne_url: str = "http://localhost:5175/ingest"
    ariadne_token: str = ""
    otlp_endpoint: str = ""
    content: bool = False
    console_level: str = "auto"
    max_queued_events: int = 4096


def build_dispatcher(
    settings: ExportSettings,
    on_event: AnySink | None,
    *,
    redact: Redact,
    archive: EventArchive | None = None,
    event_writer: ExportWorker | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Dispatcher:
    """Return a dispatcher to the caller's own sink, the exporters that are named, the archive and the store."""
    sinks: list[AnySink] = [on_event] if on_event is not None else []
    sinks += [build_exporter(name, settings, redact) for name in settings.exporters]
    if archive:
        exporter, most = ArchiveExporter(archive), settings.max_queued_events
        sinks.append(ExportWorker(exporter, redact=redact, max_queued=most, close_seconds=_ARCHIVE_CLOSE_SECONDS))
    if event_writer:
        sinks.append(event_writer)
    return Dispatcher(sinks, metadata=metadata)


def build_exporter(name: str, settings: ExportSettings, redact: Redact) -> AnySink:
    """Return an exporter by its name; a missing package is named with the extra that installs it."""
    match name:
        case "console":
            return ConsoleEmitter(redact, level=settings.console_level)
        case "ariadne":
            from compact.telemetry.ariadne import AriadneExporter

            exporter = AriadneExporter(settings.ariadne_url, token=settings.ariadne_token)
            return ExportWorker(exporter, redact=redact, max_queued=settings.max_queued_events)
        case "otlp":
            _require(name, _OTLP_PACKAGES, extra="otlp")
            from compact.telemetry.otlp import OtlpExporter

            exporter = OtlpExporter(settings.otlp_endpoint, content=settings.content)
            return ExportWorker(exporter, redact=redact, max_queued=settings.max_queued_events)
        case "agents":
            _require(name, _AGENTS_PACKAGES, extra="openai-agents")
            from compact.telemetry.agents_tracing import AgentsTracing

            return AgentsTracing(redact, content=settings.content)
        case _:
            raise ConfigError(
                f"no exporter {name!r}",
                field="telemetry.exporter",
                hint="use console, ariadne, otlp, agents or none, or several with commas between",
            )


def _require(exporter: str, packages: Mapping[str, str], *, extra: str) -> None:
    for module, package in packages.items():
        if not _is_installed(module):
            raise ConfigError(
                f"the exporter {exporter} needs the package {package}",
                field="telemetry.exporter",
                hint=install_line(extra),
            )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is a part of is not installed
        return False

"""Google ADK: a plugin that compacts each request of every agent of an app, and leaves sessions whole.

    from google.adk.apps import App
    from compact import CompactConfig, CompactManager
    from compact.adapters.google_adk import AdkCompactionPlugin

    manager = CompactManager(CompactConfig(model="gemini-2.5-pro"))
    app = App(name="audit", root_agent=agent, plugins=[AdkCompactionPlugin(manager)])

The hook is `BasePlugin.before_model_callback`. A message is protected by `protected(content)`, which tags its first
part: `part_metadata={"compact": {"protected": True}}`. The tag is stored with the session, and removed before a request
leaves.

plugin    the plugin, the recall tool, tags, and what is counted beside the contents
"""

from typing import Any

from compact.adapters.support import needs_package, renamed

SUPPORTED_VERSIONS = ">=2.10,<3"
with needs_package("google-adk", SUPPORTED_VERSIONS, extra="google-adk"):
    from compact.adapters.google_adk.plugin import AdkCompactionPlugin, RecallTool, protected

__all__ = ["SUPPORTED_VERSIONS", "AdkCompactionPlugin", "RecallTool", "protected"]


def __getattr__(name: str) -> Any:
    return renamed(__name__, name, {"CompactionPlugin": AdkCompactionPlugin})

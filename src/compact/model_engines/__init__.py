"""The engine for each model that a manager is asked for.

engines         makes them when they are first needed; the budget of a request, and the room for its answer
overflows       what is learned from a provider that refused a prompt as too long
window_notices  what there is to say about a window and its thresholds
"""

from compact.model_engines.engines import AnswerReserve, ModelEngineBuilder, ModelEngines
from compact.model_engines.overflows import ReportedOverflow

__all__ = ["AnswerReserve", "ModelEngineBuilder", "ModelEngines", "ReportedOverflow"]

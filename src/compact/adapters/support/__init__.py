"""What every adapter and the proxy share, so that an adapter holds only what is particular to its framework.

requests   prepare a request, fall back to sending it unchanged, feed reported usage back, retry once after an overflow
overflow   which errors say that a prompt was too long, and the figures in them
sessions   which session a request belongs to: by a given name, or by how its history continues
recall     the tool by which an agent reads what left its prompt
items      messages as plain data and back, tool schemas, instructions as text
chat_messages  the dialect of a framework whose messages come to entries one by one
endpoints  the kinds of HTTP requests that hold a conversation, and where their parts are
usage_reports  usage as providers report it, in answers as data
limits     the tokens that a request sets aside for its answer, under each of their names
packages   the error for a missing framework, and names that were renamed
"""

from __future__ import annotations

from compact.adapters.support.items import (
    call_positions,
    function_schema,
    insert_calls,
    instruction_text,
    is_list,
    is_mapping,
    same_objects,
    without_meta,
)
from compact.adapters.support.limits import litellm_limit, output_limit
from compact.adapters.support.packages import needs_package, renamed
from compact.adapters.support.recall import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    aanswer_recall,
    answer_recall,
)
from compact.adapters.support.requests import (
    SENT_UNCHANGED,
    USAGE_IGNORED,
    OutgoingRequest,
    PreparedRequest,
    RequestPreparer,
    UsageFeedback,
    aobserve_overflow,
    aobserve_usage,
    checked_manager,
    counted,
    observe_overflow,
    observe_usage,
    prompt_tokens,
    report_failure,
)
from compact.adapters.support.sessions import (
    SESSION_HEADER,
    RecentDict,
    SessionFinder,
    named_session,
)
from compact.dialects.objects import PlainItems

__all__ = [
    "RECALL_DESCRIPTION",
    "RECALL_NAME",
    "RECALL_PARAMETERS",
    "SENT_UNCHANGED",
    "SESSION_HEADER",
    "USAGE_IGNORED",
    "OutgoingRequest",
    "PlainItems",
    "PreparedRequest",
    "RecentDict",
    "RequestPreparer",
    "SessionFinder",
    "UsageFeedback",
    "aanswer_recall",
    "answer_recall",
    "aobserve_overflow",
    "aobserve_usage",
    "call_positions",
    "checked_manager",
    "counted",
    "function_schema",
    "insert_calls",
    "instruction_text",
    "is_list",
    "is_mapping",
    "litellm_limit",
    "named_session",
    "needs_package",
    "observe_overflow",
    "observe_usage",
    "output_limit",
    "prompt_tokens",
    "renamed",
    "report_failure",
    "same_objects",
    "without_meta",
]

"""What writes summaries: code, or a model.

extractive       by code, without a model: the default
forms            what each form of a summary by code lists, and what it gives its room to
entries          lines of such lists: a decision with its reason, a file with its changes
chronicle        the story: chosen pieces step by step
reach            how far back lines are chosen from
llm/             by a model: prompts, answers, merging
clients/         the models' clients: OpenAI, Anthropic, litellm; retries and errors
spending         limits on what the summaries of a session may cost
circuit_breaker  stops asking a model that fails again and again

The socket is `compact.core.summary.summarizer`: any function of a SummaryRequest is a summariser, and one with
`identity(form)` is treated as a model.
"""

"""Where log, plans, summaries, artifacts and the audit of model calls live."""

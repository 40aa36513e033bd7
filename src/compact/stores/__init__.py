"""Where log, plans, model calls, summaries, artifacts and events of sessions are stored.

memory         everything in dictionaries, as long as the process lives
memory_events  events among them
scanning       what readers ask, for stores that can only load a session
entry_text     a log entry as JSON
event_text     an event as JSON
packing        texts as SQLite keeps them
sql            sessions in SQLite or PostgreSQL, with
  sql_branches   the views of callers
  sql_calls      model calls, and what each prompt was made of
  sql_search     which entries hold a term, in the database's own index
  sql_artifacts  artifacts
  sql_events     traces and spans
  sql_shared     claims on summaries and cached summaries, shared between processes
database       connections, and what to do when the database is away
schema         the tables, and their version

The sockets are in `compact.core.audit.store`; `examples/own_store.py` is a store of one's own.
"""

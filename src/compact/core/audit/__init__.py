"""What is kept about a session, and asked later.

records        what a store keeps, and what one call adds
call_details   what is recorded of a call beside its size: its model, prices, cache, contents
cost           what calls, compactions and sessions cost, and what was saved
failures       what failed in a session, and what was done instead
store          the sockets for stores, claims and the summary cache
artifacts      content outside the prompt, and who may read it
trace_events   events as traces and spans
archive        the socket for archives
diff           what left the prompt between two plans
freed          what each action freed, adding up to the whole
report         what became of each string that left
regret_finder  what was removed, and the agent asked for again
why            where a phrase is now, since when, and which calls lacked it
phrases        how a phrase is compared with texts, and its excerpts
sent_calls     what each call showed, as texts
"""

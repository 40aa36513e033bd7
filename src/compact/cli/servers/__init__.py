"""Commands that run until they are stopped with Ctrl-C.

view    `compact view`: the viewer in the browser
proxy   `compact proxy`: compacts between an agent and its provider
worker  `compact worker`: prefetches summaries for agents that share a PostgreSQL store
"""

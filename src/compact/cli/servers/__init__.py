"""Commands that run until they are stopped with Ctrl-C.

view       `compact view`: the viewer in the browser
proxy      `compact proxy`: compacts between an agent and its provider
agent_setup  what to set so that an agent uses it
mcp        `compact mcp`: recall, why and status for any agent that speaks MCP
mcp_tools  the tools of that server
worker     `compact worker`: prefetches summaries for agents that share a PostgreSQL store
"""

"""A proxy between an agent that cannot be changed and its provider: it compacts requests, and passes all else through.

    agent ──> server ──> app ──> compaction (one request) ──> upstream ──> provider
      ^                   │                                       │
      └───────────────────┴── usage (read from the response) <────┘

server          listens for agents, with uvicorn
joined_writes   sends the start of a response together with its body
app             the ASGI application: takes a request, sends it on, passes the response back
client_request  the request of an agent, as it comes in
compaction      compacts the conversation in a request, and feeds usage back
sessions        which session a request belongs to
outcome         what was done with a request, and the response header that says so
managers        a manager for each model that is asked for
overflow        sends once more, smaller, what the provider refuses as too long
passing         the response as the agent gets it
upstream        the connection to the provider
recall          offers the model the recall tool, and answers its calls, a folder
usage           reads the token counts that a provider reports from the response that passes through, a folder
headers         which headers are passed on
bodies          reads the bodies of requests, a folder
aws_signing     signs anew what an agent has signed for AWS
caller_keys     whose request it is, and how many sessions one API key has in memory
settings        the proxy's settings
"""

"""The recall tool, offered to the model and answered by the proxy: the agent sees neither a call nor its result.

offer          whether a request gets the tool, and the tool in the form of each wire
event_stream   cuts a stream into its events
answer         what the answers of all wires have in common
chat           an answer of Chat Completions, whole or streamed
responses      an answer of the Responses API
anthropic      an answer of Anthropic Messages
exchanges      hidden calls and their results, and how they get back into later requests
rounds         asks the provider again with what was recalled, and joins the answers to one
"""

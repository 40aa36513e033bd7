"""The bodies of requests that hold a conversation.

encodings   unpacks those that an agent has packed
reading     reads their JSON: of a conversation that grows, only what is new
"""

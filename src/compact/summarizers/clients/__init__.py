"""Clients that ask a model one question and return its answer; a third-party package is loaded with the first question.

model_client      the socket: CompletionRequest in, ModelAnswer out, and what can go wrong
providers         which client speaks to which provider, and the package it needs
openai_client     any endpoint that speaks Chat Completions
anthropic_client  Anthropic's Messages
litellm_client    every provider that litellm knows
api_errors        what the errors of these packages mean
call_settings     the parameters of a call, and which of them an endpoint does not take
retrying          tries again within a deadline
observed          emits an event for each call
"""

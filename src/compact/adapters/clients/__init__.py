"""Clients of model providers: one line, and every call of theirs that holds a conversation is compacted.

    import compact
    from openai import OpenAI

    client = compact.wrap(OpenAI())
    client.chat.completions.create(model="gpt-4o", messages=messages)

A wrapped client is of the same class as the one that was passed in, which stays as it is. The hook is the one method
that all calls of a client go through, so that streams and helpers such as `.parse` need nothing of their own: there a
request is plain data, and retries are still to come. The Anthropic SDK has middleware for this, and it is used.

wrap             `wrap`: finds out whose client it is
compaction       what all of them share: session, request, usage
watched_streams  streams that hand on what they are given, and look at it
openai_client    OpenAI and Azure, Chat Completions and Responses, with and without an event loop
google_client    google-genai: generate_content and its stream, with and without an event loop
bedrock_client   boto3's Bedrock runtime: converse and converse_stream
"""

from compact.adapters.clients.wrap import wrap

__all__ = ["wrap"]

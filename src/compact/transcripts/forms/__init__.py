"""Forms of messages that several logs share.

anthropic_blocks  Anthropic's messages
response_items    items of OpenAI's Responses API
gemini_parts      Gemini's contents
chat_messages     Chat Completions, and LangChain's messages
"""

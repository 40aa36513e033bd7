"""Ollama's own chat API: much like Chat Completions, but calls have no ids, and arguments are objects.

messages  messages as entries, and entries as messages
check     what the server answers with 400
"""

from compact.dialects.ollama.check import check_ollama as check_ollama
from compact.dialects.ollama.messages import OllamaDialect as OllamaDialect

"""Vercel AI SDK: `ModelMessage`s as `generateText({ messages })` takes them, written as JSON.

messages  the dialect: messages as entries, and entries as messages
parts     calls and results, of which each version of the SDK has its own form
check     what the SDK, or the providers behind it, throw an error for
"""

from compact.dialects.vercel.check import check_vercel as check_vercel
from compact.dialects.vercel.messages import VercelDialect as VercelDialect

"""How big a text, a message or a tool schema is, and how much a model holds."""

from compact.tokens.exact import TiktokenTokenizer
from compact.tokens.factory import get_tokenizer
from compact.tokens.models import ModelInfo, ModelProvider, model_info
from compact.tokens.simple import SimpleTokenizer

__all__ = ["ModelInfo", "ModelProvider", "SimpleTokenizer", "TiktokenTokenizer", "get_tokenizer", "model_info"]

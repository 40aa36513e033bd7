"""How many tokens a text, a message or a tool schema has, and how many a model takes.

factory           the tokenizer for a model
exact             counts by a published encoding; toktok_counter and tiktoken_counter are the packages that can count
simple            an estimate for all other models
framing           what a message costs beyond its text
schemas           what tool schemas cost
images            what an image costs
documents         what a document or a recording costs
runs              very long runs of one character, made short
models            provider, window, largest input and encoding of a model, by its name
names             a model's own name in the names that hosts and routers give it
windows           our own table of windows and largest inputs
price_table       windows of models that are not in our own table, and of hosts
usage             the input tokens in a provider's usage report
"""

from compact.tokens.exact import TiktokenTokenizer
from compact.tokens.factory import get_tokenizer
from compact.tokens.models import ModelInfo, ModelProvider, model_info
from compact.tokens.simple import SimpleTokenizer

__all__ = ["ModelInfo", "ModelProvider", "SimpleTokenizer", "TiktokenTokenizer", "get_tokenizer", "model_info"]

"""The real model, for the tests of this folder."""

from real_model import real_model

__all__ = ["real_model"]

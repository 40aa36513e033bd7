"""Finds constraints: what users asked to hold for the rest of a session, word for word.

finder       the constraints of a text, and those that still hold at the end of a history
sentences    the sentences of a message that a person typed, without code, logs and what a harness added
score        how likely a sentence is to be a constraint: its cues and words, times their weights
retractions  constraints that are withdrawn, or replaced by a newer one about the same thing
word_lists   reads the data files, each once
data/        cues, cues of other languages, classes of words, retractions, what belongs to a constraint, and the
             learned weights, which `python benchmarks/learn_constraints.py` writes
"""

from __future__ import annotations

from compact.constraints.finder import LearnedConstraints

__all__ = ["LearnedConstraints"]

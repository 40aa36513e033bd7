"""Finds constraints: what users asked to hold for the rest of a session."""

from compact.constraints.finder import LearnedConstraints

__all__ = ["LearnedConstraints"]

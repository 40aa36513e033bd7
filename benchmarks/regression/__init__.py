"""A short form of each benchmark, whose figures are kept in a file: a change of a strategy is seen as a diff of it.

    parts.py     what is measured, each as a table
    results.md   the figures as they were last written

Everything is made from a seed and counted in tokens, so the figures are the same in every run and on every machine.
There are no times: those have limits of their own, in `tests/benchmarks/` and `tests/endurance/`.
"""

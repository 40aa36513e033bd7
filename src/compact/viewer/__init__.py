"""The viewer: a page on one's own machine that shows what compaction did, and what the model saw."""

"""How much of what the rest of a session needs survives a compaction, measured on real transcripts without a judge."""

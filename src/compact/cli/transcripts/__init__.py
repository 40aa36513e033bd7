"""Commands that work on a transcript file and write nothing to a store.

run      `compact run`: compacts a transcript
plan     `compact plan`: what a compaction would do, and what it costs
inspect  `compact inspect`: what a transcript is made of
files    reads and writes transcript files
requests what in a provider's request is the conversation
measure  counts the tokens of a transcript, message by message
"""

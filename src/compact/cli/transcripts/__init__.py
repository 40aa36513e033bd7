"""Commands that work on a transcript file: in one of our own forms, or a log of an agent.

run      `compact run`: compacts a transcript
plan     `compact plan`: what a compaction would do, and what it costs
inspect  `compact inspect`: what a transcript is made of
logs     `compact import`: logs of agents into the store
files    reads and writes transcript files
requests what in a provider's request is the conversation
agent_logs  logs of agents as transcripts
measure  counts the tokens of a transcript, message by message
"""

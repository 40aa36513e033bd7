"""The one summary of a prompt: as data, as text, fitted into its room, and checked against its sources.

summary       the summary as structure, and its text in the prompt
summarizer    the sockets for whoever writes it: Summarizer, and ModelSummarizer for models
fitting       cuts a summary to the room there is, required facts last
verification  what a summary lacks, and what it says that no source has
"""

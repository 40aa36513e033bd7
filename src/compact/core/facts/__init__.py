"""What code reads in a history: strings, facts, scores. No model, no clock; the same input gives the same facts.

text          the text kit: lines, sentences, words, JSON leaves; all others use it
tool_calls    what a call is about: its file, its command, whether it only reads
entities      the specific strings of a text: paths, ids, numbers, dates, names of errors, quotations
outcomes      tool calls with their results, and how they failed, if they did
open_items    the one reader of to-do lists, tasks and ticked boxes
constraints   the socket for finding what users asked to hold
ledger        facts as data, and how a ledger is cut to fit
extraction    finds the facts of a span: the ledger
grounding     whether the sources of a summary have a string, and whose words it is in
pieces        messages cut into lines and parts of lines
common_words  words that stand in every conversation (made by benchmarks/common_words.py)
score         how likely each string and word is to be needed again
value         the value of content by kind and age, for what the agent writes next
value_table   the values (made by benchmarks/value.py)
selection     chooses pieces for a budget by what they add
"""

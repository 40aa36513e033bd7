"""`compact audit`: what an agent's own compactions forgot.

audit     the command
findings  what is found out about each compaction, as data
facts     what was in a prompt that must not be forgotten, and whether a text still has it
repeats   what the agent read again, and what a person said again
rival     what Compact keeps in the same room
text      the report on a terminal and in a pipe
page      the report as one page of HTML
"""

"""The ground floor: standard library only, no clock, no randomness, no I/O. Each room imports only those below it.

engine      the way of a call
session     what is known of one session between two calls
audit       what is kept about it, and asked later
planning    how the next plan is made
plan        what is sent
summary     the one summary
facts       what code reads in a history
log         what happened
messages    what all of it is made of

protocols   everything that can be plugged in, on one page
errors      everything that is raised
steps       how work that waits is written
json_data   mappings and lists, for the type checker
short_repr  reprs that fit a line
plurals     numbers with their nouns
control_characters what steers a terminal
former_names  modules and names of former times, which still work
python_version  what a Python that is too old is told
"""

"""Conversations that the project makes itself, for measuring where there are no transcripts, such as in CI.

    rows.py      all of them, as the rows of data files in a folder
    script.py    writes down a conversation, and chooses what of earlier comes up again
    words.py     invents words, names, numbers and ids
    coding.py    an agent that reads, edits and tests the files of a project
    service.py   an agent that works through the bookings of customers
    shell.py     an agent that has a shell and an issue to fix

They are made by rule from a seed. What comes up again later was said before by a user, by the agent, in arguments of a
call or in a result only. More of it is old than in real transcripts, where half of what the future needs lies in the
newest eighth: figures of the sample compare versions of the product, they do not predict figures of real sessions.
"""

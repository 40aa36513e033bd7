"""What happened: the append-only log, and how a caller's list is matched with it.

log            append what is new in a caller's list; branches, retries, equal entries
alignment      where the items of a list are in one that is known
forms          the same entry in another form: cleared, cut short, with another time in it
"""

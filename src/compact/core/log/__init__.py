"""What happened: the append-only log, and how a caller's list is matched with it.

log            append what is new in a caller's list; branches, retries, equal entries
known_list     lists that a caller may send back
recognition    which of these a list goes on from, and which items are entries in other forms
alignment      where the items of a list are in one that is known
list_change    what leaves the line, and where what is new goes
forms          the same entry in another form: cleared, cut short, with another time in it
formed_entries the entries of a log, each as it came and as the caller has it now
left_entries   entries that the caller has left, and may return to
"""

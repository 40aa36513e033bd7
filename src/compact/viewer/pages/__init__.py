"""The data of each page of the viewer, read from the store.

sessions    the list of sessions
costs       finds in the background what sessions cost, and what failed in them
losses      finds in the background which sessions lost something
session     one session: its calls, its plans, its log, and where a phrase is
compaction  one compaction: before and after, its price, its summary and its loss report
summary     the text of a summary, with what code verified in it
call        one model call: the exact prompt
"""

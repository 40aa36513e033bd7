"""The data of each page of the viewer, read from the store.

sessions    the list of sessions
costs       finds in the background what sessions cost, their compactions, and what failed
losses      finds in the background which sessions lost something
session     one session: its calls, its plans and its log
log         its messages, all of them or what matches a filter
export      a prompt in its wire form, and the log as a file
compaction  one compaction: before and after, its price, its summary and its loss report
summary     the text of a summary, with what code verified in it
restoring   what an undo or a restore comes to
traces      what was traced: operations, events, errors
call        one model call: the exact prompt
compare     two prompts side by side
why         where a phrase is, and which calls lacked it
"""

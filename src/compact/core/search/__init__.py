"""How entries of a log are found by words, alike in every store.

search_terms   the terms by which entries are found
stemming       the stem of an English word
ranking        which entries match a query best
recall_answer  how the recall tool is named, and how its answers begin
"""

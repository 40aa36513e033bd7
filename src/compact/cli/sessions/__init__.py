"""Commands that work on the sessions of a store.

sessions  `compact sessions`: the list
show      `compact show`: one session, one plan version, or the current prompt
diff      `compact diff`: two plan versions compared
why       `compact why`: where a phrase is now, and why
report    `compact report`: what each compaction kept and lost
recall    `compact recall`: finds what left the prompt
undo      `compact undo`: restores an earlier plan version
export    `compact export`: the full log
prune     `compact prune`: deletes a session, or old ones
"""

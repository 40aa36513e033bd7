"""What happened: messages, and the append-only log they are matched with.

messages       one entry of a conversation, whatever dialect it came in
attachments    what is attached to a message: pictures, documents, recordings
attachment_use which of them are in use
pdf_pages      how many pages a PDF has
entries        read and write entries in the one form the log has
log            append what is new in a caller's list; branches, retries, equal entries
alignment      where the items of a list are in one that is known
forms          the same entry in another form: cleared, cut short, with another time in it
own_compaction agents that have replaced their own history by a summary
groups         messages that only make sense together; turns
structure      how a history is built, read once as it grows
sensitivity    who may see an entry, and what stands for it elsewhere
legality       what a provider accepts, and the nearest legal prompt
turn_order     lines where a whole turn was left out, so that user and assistant alternate
tokenizer      the socket for token counters
"""

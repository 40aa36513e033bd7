"""What a call waits for, and how long.

forks        what a forked process makes anew
limits       how long a call waits, and the threads that are left behind when it stops
processes    whether the process that holds a claim has ended
progress     how a store that has much to do says that it comes on
"""

"""Who writes a summary before it is needed.

background   this process, in a few threads
job_queue    worker processes, by jobs on the PostgreSQL that holds the sessions
"""

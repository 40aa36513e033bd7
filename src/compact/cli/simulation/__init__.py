"""`compact simulate`: recorded sessions, call by call, under several policies.

simulate      the command
policy_names  the policy that a name on the command line means
recorded      the sessions in files and folders
tables        the results as text and as data
page          the results as one HTML page, which loads nothing; page.css is its style
charts        the drawings on it
"""

"""`compact demo`: runs an agent's session of six windows through one, with a script for its models.

demo              the command
replay            sends the session through preflight call by call, takes a compaction back, and checks every prompt
scripted_model    the model that writes the summaries, and fails once
story             says what happened, topic by topic
drawing           draws the window on a terminal
session.jsonl.gz  the session; tools/make_demo_session.py generates it
script.toml       the agent's tools, the constraints of the session, and what the model answers
"""

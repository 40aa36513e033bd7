"""`compact demo`: replays a session of three windows through one window.

demo              the command
replay            sends the session through preflight call by call, and checks every prompt
drawing           draws the window on a terminal
session.jsonl.gz  the session; tools/make_demo_session.py generates it
"""

"""The characters that steer a terminal or turn the order of what is read: no text of others may bring them there."""

from __future__ import annotations

# In a class of a regular expression: DEL, the second set of control characters (`\x9b` begins a command as `\x1b[`
# does), and marks for the direction of writing, by which a line seems to say something else.
STEERING = r"\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

"""Stands between an agent that cannot be changed and its provider: what is sent fits the window, nothing else differs.

agent ──> server ──> app ──> wires (what is in the request) ──> sessions (whose it is) ──> desk (preflight)
  ^                   └────> upstream (bytes there and back) ──> usage (what was counted, read on the way)
"""

"""Agent frameworks and client libraries that Compact plugs into.

Each folder is the adapter of one framework, and is named after it; its docstring says which hook it uses and what its
files are. Importing an adapter imports its framework; if that is missing, the error names the extra to install.

own_loop   is the adapter for loops that somebody wrote by hand
support    is no adapter: it is what all of them and the proxy share
"""

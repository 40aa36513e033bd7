"""The `compact` command: one file per command, in a folder for what the command works on.

main          the entry point: registers every command and turns errors into two lines
command_help  help texts without braces and Python types
options       arguments and options that several commands share
screen        output: drawn on a terminal, aligned text in a pipe, JSON
ascii_text    what stands for signs that an encoding lacks
settings      loads the configuration of a command
store         opens the store that a command works on
config        `compact config`
doctor        `compact doctor`
transcripts/  commands on a transcript file: run, plan, inspect, import
audit/        `compact audit`
sessions/     commands on the sessions of a store: sessions, show, diff, why, report, recall, undo, export, prune
simulation/   `compact simulate`
servers/      commands that run until they are stopped: view, proxy, mcp, worker
demo/         `compact demo`
"""

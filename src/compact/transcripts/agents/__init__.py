"""Session logs of agents: a file for each of them.

claude_code  Claude Code
codex        Codex
gemini_cli   Gemini CLI
qwen_code    Qwen Code
opencode     opencode: a database, a folder, or an export
cline        Cline and Roo Code
pi           pi
branches     the branch that a session ended with
"""

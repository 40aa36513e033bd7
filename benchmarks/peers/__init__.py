"""What agent frameworks ship, each through its own code, beside Compact: on the same sessions, at the same sizes.

langchain_peers, agent_framework_peers, strands_peers, google_adk_peers, pydantic_ai_peers,
litellm_peers, headroom_peers
              a file for each framework: its ways as policies of `compact.measuring`
conversion    the summary that stands in for a model's, and how wires are found again
registry      all of them, with the versions that are installed
measuring     what each costs and keeps, whether its prompts are legal, with intervals
speed         how long it takes on histories of 100 to 10,000 turns, how much memory, and how long its import
document      the tables in docs/why.md
command       the command line
"""

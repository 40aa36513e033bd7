"""Reads the session logs of agents and the exports of tracing tools, found by their content.

reading  `read`: a file or a folder in, sessions out; which formats there are
logs     what is returned: sessions, the agent's own compactions, what was not understood
sources  files in any packing: plain or gzipped, a line at a time
own_forms  transcripts of our own form with an agent's compactions in them
builder  builds a session from the pieces of a log
parts    content of all the formats: texts and images
agents   session logs of agents
exports  exports of platforms
forms    forms of messages that several of them share
"""

from compact.transcripts.logs import AgentLog as AgentLog
from compact.transcripts.logs import OwnCompaction as OwnCompaction
from compact.transcripts.logs import UnknownLines as UnknownLines
from compact.transcripts.reading import FORMATS as FORMATS
from compact.transcripts.reading import ReadLogs as ReadLogs
from compact.transcripts.reading import read as read

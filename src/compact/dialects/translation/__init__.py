"""The translation between a caller's list and the log of its session, which remembers what it has read and written.

translator  the translation of one session's list, there and back
blocks      what it remembers: items, and the entries they are
looks       when two items are the same
sought      the items of a list that are looked for in a known one
added       what we have added behind the log, in items that come back
"""

from compact.dialects.translation.blocks import ShownList as ShownList
from compact.dialects.translation.looks import look_of as look_of
from compact.dialects.translation.looks import may_look_otherwise as may_look_otherwise
from compact.dialects.translation.translator import Translator as Translator

"""The usage that a provider reports, read from a response as it passes through; the response is never changed.

reader         finds the report, however the response is packed and cut into parts
event_frames   the binary framing of AWS streams
"""

from compact.proxy.usage.reader import UsageReader as UsageReader

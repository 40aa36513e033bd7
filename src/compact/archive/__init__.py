"""The archive: transcripts, summaries and events for people, written at each compaction and never read again.

filesystem      a folder per session on disk
s3              a folder per session in a bucket
retention       how long things are kept, and how much
names           the names of folders and files, the same for both
json_lines      messages and events as JSON
private_folder  a folder that only its owner can read, with files that appear whole or not at all

The socket is `compact.core.audit.archive.StorageAdapter`: an adapter of one's own is `CompactManager(archive=…)`.
What gets here is redacted already, `Message.original` included.
"""

from compact.archive.filesystem import FilesystemArchive
from compact.archive.retention import Retention
from compact.archive.s3 import S3Archive
from compact.core.audit.archive import ArchiveError, StorageAdapter

__all__ = ["ArchiveError", "FilesystemArchive", "Retention", "S3Archive", "StorageAdapter"]

"""The archive: transcripts and summaries for people, written before a compaction.

Only writing happens here. Whoever hands messages in has redacted them already, `original` included.
"""

from compact.archive.errors import ArchiveError
from compact.archive.filesystem import FilesystemArchive
from compact.archive.s3 import S3Archive
from compact.core.audit.archive import StorageAdapter

__all__ = ["ArchiveError", "FilesystemArchive", "S3Archive", "StorageAdapter"]

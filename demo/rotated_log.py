"""A log file that its writer renames and starts again: every line of every part, once."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

_CHUNK_BYTES = 1 << 20
_LAST_NS = 1 << 63


@dataclass(slots=True)
class _Part:
    """One inode. It stays open while it has a name, so no new file can get its number."""

    handle: FileIO
    written_ns: int = _LAST_NS
    tail: bytearray = field(default_factory=bytearray)
    is_too_long: bool = False

    def stat(self) -> os.stat_result:
        return os.fstat(self.handle.fileno())

    def lines(self, limit_bytes: int) -> Iterator[bytes | None]:
        """Whole lines up to the current size of the file; an unfinished line is kept for later."""
        end = self.stat().st_size
        if end < self.handle.tell():
            self.handle.seek(0)
            self.take()
        while (left := end - self.handle.tell()) > 0:
            pieces = self.handle.read(min(left, _CHUNK_BYTES)).split(b"\n")
            for piece in pieces[:-1]:
                self._extend(piece, limit_bytes)
                yield self.take()
            self._extend(pieces[-1], limit_bytes)

    def take(self) -> bytes | None:
        """The line read so far, None if it was too long; then begin the next one."""
        line = None if self.is_too_long else bytes(self.tail)
        self.tail.clear()
        self.is_too_long = False
        return line

    def _extend(self, piece: bytes, limit_bytes: int) -> None:
        self.is_too_long |= len(self.tail) + len(piece) > limit_bytes
        if self.is_too_long:
            self.tail.clear()
        else:
            self.tail += piece


class RotatedLog:
    """Follows `path` by inode through log4j2's rotation (RollingFile, %i in its filePattern).

    Parts under a rotated name (`requests.3.jsonl`, `requests.jsonl.3`) are read too, oldest
    first: rotations between two reads lose no line that the writer has not deleted. A file that
    does not exist yet is awaited; a truncated one is read again.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        stem, suffix = re.escape(path.stem), re.escape(path.suffix)
        self._rotated = re.compile(rf"{stem}[.-](\d+){suffix}|{stem}{suffix}\.(\d+)")
        self._parts: dict[int, _Part] = {}

    def lines(self) -> Iterator[bytes | None]:
        """Lines since the last call, up to the current end of files; None is one over the limit."""
        newest = self._poll()
        for inode, part in sorted(self._parts.items(), key=lambda item: item[1].written_ns):
            yield from part.lines(self._limit_bytes)
            if newest not in (None, inode) and (part.tail or part.is_too_long):
                yield part.take()  # its writer died in the middle of a line
        self._forget_deleted()

    def close(self) -> None:
        """Close every part."""
        for part in self._parts.values():
            part.handle.close()
        self._parts.clear()

    def _poll(self) -> int | None:
        """Open new parts. Returns the inode with the log's own name, if any."""
        inodes = [self._open(path) for path in (self._path, *self._rotated_names())]
        newest = inodes[0]
        for inode, part in self._parts.items():
            part.written_ns = _LAST_NS if inode == newest else part.stat().st_mtime_ns
        return newest

    def _rotated_names(self) -> list[Path]:
        if not self._path.parent.is_dir():
            return []
        names = map(self._rotated.fullmatch, os.listdir(self._path.parent))
        oldest_first = sorted((int(n[1] or n[2]), n.string) for n in names if n)
        return [self._path.with_name(name) for _, name in oldest_first]

    def _open(self, path: Path) -> int | None:
        """The inode behind a name, opened if it is new; None if the name was removed meanwhile."""
        try:
            if (inode := path.stat().st_ino) in self._parts:
                return inode
            handle = FileIO(path)
        except FileNotFoundError:
            return None
        inode = os.fstat(handle.fileno()).st_ino
        if inode in self._parts:
            handle.close()
        else:
            self._parts[inode] = _Part(handle)
        return inode

    def _forget_deleted(self) -> None:
        for inode, part in list(self._parts.items()):
            if part.stat().st_nlink == 0:
                part.handle.close()
                del self._parts[inode]

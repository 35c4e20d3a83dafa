"""Where files are read from: this machine, or anything that fsspec opens by a URL, such as s3://bucket/kafka.

A file system lists directories and reads ranges of bytes. It is pickled to the workers, where it is opened anew.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from tagwire.errors import ConfigError, StorageError, TagwireError
from tagwire.records.files.names import partition_name
from tagwire.records.files.opening import open_file

_LONGEST = 500


class FileInfo(NamedTuple):
    """A file or a directory. `path` is what the file system takes; `size` in bytes, 0 of a directory."""

    path: str
    name: str
    size: int
    is_directory: bool


class LocalFileSystem:
    """Files of this machine: every worker has to see them under the same path."""

    def get_info(self, path: str) -> list[FileInfo]:
        """What stands at `path`, which may hold `*`, `?` and `[]`. Raises StorageError where there is nothing."""
        with _storage(path):
            # A directory may be called as a pattern is, which would find another.
            found = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.lexists(path) else [path]
            if not found:
                raise StorageError(f"{path}: no file or directory has such a name")
            return [_named_info(Path(each)) for each in found]

    def list_directory(self, path: str) -> list[FileInfo]:
        """What a directory holds, by name. Raises StorageError."""
        found = []
        with _storage(path):
            for each in Path(path).iterdir():
                try:
                    found.append(_local_info(each))
                except FileNotFoundError:
                    # A broker has removed it since it was listed; of a link, what it leads to is missing.
                    if each.is_symlink():
                        raise
        return sorted(found, key=lambda entry: entry.name)

    def size(self, path: str) -> int:
        """Of a file, in bytes, now. Raises StorageError."""
        with _storage(path):
            return os.stat(path).st_size

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a file from `start` to before `end` (None: all), fewer where it ends. Raises StorageError."""
        with _storage(path), open_file(path) as file:
            file.seek(start)
            return BufferedReader(file).read(-1 if end is None else max(0, end - start))


class FsspecFileSystem:
    """What fsspec opens by a URL. `settings` go to its file system: keys, endpoints. They are kept out of the repr."""

    def __init__(self, url: str, settings: Mapping[str, Any]) -> None:
        self._url = url
        self._settings = dict(settings)
        self._opened: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def get_info(self, path: str) -> list[FileInfo]:
        """As `LocalFileSystem.get_info`, of the file system's own URL."""
        with _elsewhere(path):
            files, root = self._open()
            if not glob.has_magic(root):
                return [_remote_info(files.info(root))]
            found = files.glob(root, detail=True)
        if not found:
            raise StorageError(f"{path}: no file or directory has such a name")
        return [_remote_info(found[name]) for name in sorted(found)]

    def list_directory(self, path: str) -> list[FileInfo]:
        """What a directory holds, by name. Raises StorageError."""
        with _elsewhere(path):
            found = map(_remote_info, self._open()[0].ls(path, detail=True))
            return sorted((each for each in found if each.name), key=lambda entry: entry.name)

    def read(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes of a file from `start` to before `end` (None: all), fewer where it ends. Raises StorageError."""
        with _elsewhere(path):
            return bytes(self._open()[0].cat_file(path, start=start, end=end))

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            try:
                import fsspec
            except ImportError:
                raise ConfigError(f"path {self._url}: paths with :// are read by fsspec: pip install fsspec") from None
            try:
                self._opened = fsspec.core.url_to_fs(self._url, **self._settings)
            except (ImportError, ValueError) as error:
                raise ConfigError(f"path {self._url}: {error}") from None
        return self._opened  # type: ignore[no-any-return]


FileSystem = LocalFileSystem | FsspecFileSystem


def file_system_of(path: str, settings: Mapping[str, Any]) -> tuple[FileSystem, str]:
    """The file system of a path, and the path as the file system takes it. `file:` URLs are paths of this machine."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path or "::" in path:
        return FsspecFileSystem(path, settings), path
    return LocalFileSystem(), path


def _local_info(path: Path) -> FileInfo:
    """Called as it is there: what a link leads to may be called anything."""
    is_directory = path.is_dir()
    return FileInfo(str(path), path.name, 0 if is_directory else path.stat().st_size, is_directory)


def _named_info(path: Path) -> FileInfo:
    """A directory is called by where it leads, where its own name is no partition's: `.`, `latest`."""
    info = _local_info(path)
    by_target = info.is_directory and partition_name(info.name) is None
    return info._replace(name=path.resolve().name) if by_target else info


def _remote_info(info: Mapping[str, Any]) -> FileInfo:
    path = str(info["name"])
    is_directory = info["type"] == "directory"
    return FileInfo(
        path, os.path.basename(path.rstrip("/")), 0 if is_directory else int(info["size"] or 0), is_directory
    )


@contextmanager
def _storage(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _elsewhere(path: str) -> Iterator[None]:
    """What the libraries of object stores and archives raise is of kinds of their own."""
    try:
        yield
    except TagwireError:
        raise
    except Exception as error:
        said = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
        raise StorageError(f"{path}: {said or type(error).__name__}"[:_LONGEST]) from error

"""The one error tree.

    CodekvError
    ├── UsageError              the call was wrong: exit code 2
    ├── ConfigError             a config file that cannot be used at all
    ├── ModelError
    │   ├── ModelNotFoundError  no such name, folder or file
    │   ├── DownloadError       nothing usable arrived
    │   └── ModelFormatError    it arrived but cannot be used
    ├── StorageError
    │   └── BlockFormatError    a stored block breaks a rule of docs/format.md
    ├── DocumentError           not text, too large, or excluded
    └── CancelledWorkError      the work was superseded; never shown to a user

A message is one line: what happened, to which object, what to do about it.
"""


class CodekvError(Exception):
    """Base of every error this project raises on purpose."""


class UsageError(CodekvError, ValueError):
    """The caller asked for something that cannot mean anything."""


class ConfigError(CodekvError, ValueError):
    """A configuration file cannot be read at all; single bad values only warn."""


class ModelError(CodekvError):
    """A model cannot be found, fetched or used."""


class ModelNotFoundError(ModelError, LookupError):
    """No catalog entry, folder, file or hub id answers to the name."""


class DownloadError(ModelError, OSError):
    """No source delivered the file whose hash is pinned."""


class ModelFormatError(ModelError, ValueError):
    """The files are there but are not a model this program can run."""


class StorageError(CodekvError):
    """The block store cannot read or write."""


class BlockFormatError(StorageError, ValueError):
    """A stored block breaks a rule of `docs/format.md`; it is dropped."""


class DocumentError(CodekvError, ValueError):
    """A document is binary, too large or excluded, so it gets no completion."""


class CancelledWorkError(CodekvError):
    """Work stopped because a newer request replaced it."""

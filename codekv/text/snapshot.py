"""A frozen document at one version.

Knows text and nothing else: no syntax, no tokens, no editor positions.
"""

from dataclasses import dataclass
from typing import Literal

from codekv.errors import DocumentError

Eol = Literal["\n", "\r\n", "\r"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    r"""One version of one document.

    Attributes:
        uri: Identity of the document; opaque.
        version: Grows with every change; names one text of the uri.
        language: Lower-case language id as editors spell it: `python`.
        data: UTF-8 bytes whose line ends are all `\n`.
        eol: The document's own line end, to be used in text given back to it.
    """

    uri: str
    version: int
    language: str
    data: bytes
    eol: Eol = "\n"

    @classmethod
    def from_text(cls, uri: str, version: int, language: str, text: str) -> "Snapshot":
        """Make a snapshot from text with any mixture of line ends."""
        crlf = text.count("\r\n")
        lone_cr = text.count("\r") - crlf
        lone_lf = text.count("\n") - crlf
        counts: dict[Eol, int] = {"\n": lone_lf, "\r\n": crlf, "\r": lone_cr}
        eol = max(counts, key=lambda kind: counts[kind])
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        # Lone surrogates cannot be encoded; editors send them in the middle of typing.
        data = plain.encode("utf-8", errors="replace")
        return cls(uri, version, language, data, eol)

    @classmethod
    def from_bytes(
        cls, uri: str, version: int, language: str, raw: bytes
    ) -> "Snapshot":
        """Make a snapshot from a file's bytes.

        Raises:
            DocumentError: The bytes hold a NUL or are not UTF-8, so the file is
                taken to be binary.
        """
        if b"\0" in raw:
            raise DocumentError(f"{uri}: a binary file; completion needs text")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DocumentError(
                f"{uri}: not UTF-8 at byte {error.start}; save the file as UTF-8"
            ) from error
        return cls.from_text(uri, version, language, text)

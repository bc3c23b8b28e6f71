"""Input that others may have made: files of folders, JSON, and text that is shown to people.

Every file of a run, a receipt or a backup is read by `read_plain`, every JSON text by `parse_json`,
and whatever a file, a folder or a request says reaches a terminal through `escaped`. Standard
library alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from grapheraser.errors import CorruptRunError, ParameterError

# Bytes that files and texts may have: more than anything that is written here.
MAX_JSON = 2**24
MAX_LINES = 2**30
MAX_WEIGHTS = 2**32
MAX_DEPTH = 64
_LARGE = 2**26  # bytes

# A link or a pipe in the place of a file is refused, not followed or waited for.
PLAIN = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    PLAIN |= getattr(os, _flag, 0)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OTHERS = {code: None for code in range(128) if chr(code) not in "[]{}"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_plain(
    path: Path | str, limit: int, size: int | None = None, sha256: str | None = None
) -> bytes | None:
    """Read a plain file that is no link; None where it should have another size or digest.

    Its kind and size are known before anything is read, and the digest of a large one before it is
    held; an `OSError` says that it can't be read.

    Args:
        path: of the file.
        limit: bytes that it may have.
        size: bytes that it should have.
        sha256: digest that it should have.
    """
    with open(os.open(path, PLAIN), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise CorruptRunError(f"{path}: not a plain file.")
        if size is not None and found.st_size != size:
            return None
        if found.st_size > limit:
            raise CorruptRunError(
                f"{path}: {found.st_size:,} bytes, more than such a file can have ({limit:,})."
            )
        if sha256 is not None and found.st_size > _LARGE:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                return None
            file.seek(0)
        content = file.read(found.st_size)
        fits = sha256 is None or hashlib.sha256(content).hexdigest() == sha256
        return content if fits else None


def read_named(path: Path | str, limit: int = MAX_JSON) -> bytes:
    """Read a file that the caller named, be it a link or a pipe; an `OSError` where it can't be."""
    with open(path, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ParameterError(f"{path}: more than {limit:,} bytes, too much to read.")
    return content


def parse_json(text: str | bytes, limit: int = MAX_JSON) -> Any:
    """Parse JSON that means one thing to every reader; a `ValueError` says why it does not.

    Refuses keys that an object has twice, NaN and infinite numbers, text that is not UTF-8 or has
    half of a surrogate pair, and what is longer than the limit or nested deeper than `MAX_DEPTH`.

    Args:
        text: the JSON; bytes have to be UTF-8.
        limit: characters or bytes that it may have.
    """
    if len(text) > limit:
        raise ValueError(f"longer than {limit:,} characters")
    try:
        text = text.decode() if isinstance(text, bytes) else text
        found = _DECODER.decode(text)
        text.encode()
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        raise ValueError("not UTF-8, or half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    brackets = _STRING.sub("", text).translate(_OTHERS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace("[]", "").replace("{}", "")
    if brackets:
        raise ValueError("nested too deeply")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} is there twice")
    return found


def _number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _constant(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text[:80]} is no number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_constant
)


def escaped(text: object) -> str:
    """Spell a text in one line of printable characters, as Python spells the others."""
    spelled = str(text)
    if spelled.isprintable():
        return spelled
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in spelled
    )

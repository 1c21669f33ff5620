"""Files of a project that a test breaks."""

from pathlib import Path


def write(folder: Path, name: str, text: str | bytes, mode: int = 0o755) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()

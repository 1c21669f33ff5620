"""What is mounted, and what should be: a folder made where a disk is missing fills another disk unseen."""

import re
from pathlib import Path

MOUNTED = Path("/proc/self/mountinfo")
TABLE = Path("/etc/fstab")
UNITS = Path("/etc/systemd/system")

_NETWORK = re.compile(r"nfs|cifs|smb|9p|ceph|gluster|lustre|afs|fuse\.|davfs|virtiofs")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def kind_of(path: Path) -> str | None:
    """The type of the file system that holds the path; None where the system does not say."""
    best: tuple[int, str] | None = None
    for line in _lines(MOUNTED):
        before, _, after = line.partition(" - ")
        place = Path(_plain(before.split()[4]))
        if path.is_relative_to(place) and (best is None or len(place.parts) >= best[0]):
            best = (len(place.parts), after.split()[0])
    return best[1] if best else None


def is_shared(path: Path) -> bool:
    """Whether another machine may be at work there, as far as can be known."""
    kind = kind_of(path)
    return kind is None or _NETWORK.match(kind) is not None


def awaits_disk(path: Path, table: Path = TABLE, units: Path = UNITS) -> bool:
    """Whether the path is at or below a place where a disk should be mounted and is not."""
    return any(path.is_relative_to(place) and not place.is_mount() for place in _places(table, units))


def _places(table: Path, units: Path) -> list[Path]:
    fields = [line.split() for line in _lines(table) if not line.lstrip().startswith("#")]
    places = [Path(_plain(words[1])) for words in fields if len(words) > 2 and words[1].startswith("/")]
    for unit in sorted(units.glob("*.mount")):
        places += [Path(line.removeprefix("Where=").strip()) for line in _lines(unit) if line.startswith("Where=/")]
    return [place for place in places if place != Path("/")]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _plain(name: str) -> str:
    """Without the octal escapes in which spaces are written."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), name)

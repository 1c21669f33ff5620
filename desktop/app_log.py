"""app.log: what the app itself has to say, with searchable prefixes."""

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

LINE = "%(asctime)s %(levelname)s %(message)s"
MOST_BYTES = 5 * 1024 * 1024


def open_log(path: Path, levels: str = "") -> None:
    """Writes INFO and more to `path`, warnings to stderr too.

    `levels` sets single prefixes, as in `engine=DEBUG,cron-heal=WARNING`.
    """
    to_file = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=3, encoding="utf-8")
    path.chmod(0o600)
    to_person = logging.StreamHandler(sys.stderr)
    to_person.setLevel(logging.WARNING)
    logging.basicConfig(level=logging.INFO, format=LINE, handlers=[to_file, to_person], force=True)
    for library in ("alembic", "apscheduler", "waitress"):
        logging.getLogger(library).setLevel(logging.WARNING)
    for pair in filter(None, levels.split(",")):
        prefix, _, level = pair.partition("=")
        logging.getLogger(prefix.strip()).setLevel(level.strip().upper() or "INFO")

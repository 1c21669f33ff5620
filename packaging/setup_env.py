"""Makes or refreshes .venv from a hashed requirements file.  Standard library only.

    python3 packaging/setup_env.py app|dev|qt

Dependencies only: Cronmend itself is never installed, it runs from this folder (docs/decisions/0001).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENV = ROOT / ".venv"
PYTHON = ENV / ("Scripts" if os.name == "nt" else "bin") / "python"


def make_env(uv: str | None) -> None:
    if PYTHON.exists():
        return
    if uv:
        subprocess.run([uv, "venv", "-q", "--seed", "-p", sys.executable, str(ENV)], check=True)
    else:
        venv.create(ENV, with_pip=True)


def install(uv: str | None, requirements: pathlib.Path) -> None:
    python = str(PYTHON)
    if uv:
        command = [uv, "pip", "install", "-q", "-p", python, "--require-hashes", "-r", str(requirements)]
    else:
        command = [python, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", str(requirements)]
    settings = {
        "UV_SYSTEM_CERTS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    subprocess.run(command, check=True, env={**os.environ, **settings})


def add_to_path() -> None:
    """A .pth line instead of an install: no build backend, and a job's environment stays free of PYTHONPATH."""
    ask = [str(PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    (pathlib.Path(site) / "cronmend.pth").write_text(f"{ROOT}\n")


def needs_qt() -> bool:
    """Whether there is a screen but no WebKitGTK that this Python can use: then the window is Qt's."""
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    binding = f"_gi.cpython-{sys.version_info.major}{sys.version_info.minor}-*.so"
    system = pathlib.Path("/usr/lib/python3/dist-packages/gi")
    webkit = pathlib.Path("/usr/lib").glob("*/girepository-1.0/WebKit2-4.1.typelib")
    return sys.platform == "linux" and has_screen and not (list(system.glob(binding)) and list(webkit))


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the one check that must come before any package
        sys.exit("Cronmend needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 run")
    name = sys.argv[1]
    print(f"Setting up {ENV} ({name}); this happens once.", file=sys.stderr)
    uv = shutil.which("uv")
    make_env(uv)
    install(uv, ROOT / "requirements" / f"{name}.txt")
    if name == "app" and needs_qt():
        print(
            "There is a screen and no WebKitGTK: fetching Qt WebEngine (about 300 MB) for the window.", file=sys.stderr
        )
        install(uv, ROOT / "requirements" / "qt.txt")
    add_to_path()
    stamps = ["app", "dev"] if name == "dev" else ["app"]
    for stamp in stamps:
        (ENV / f".{stamp}.stamp").touch()


if __name__ == "__main__":
    main()

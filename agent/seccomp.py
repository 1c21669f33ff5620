"""A filter of system calls: doors that no namespace closes (key rings, io_uring, machine sockets) stay shut."""

import platform
import struct
from dataclasses import dataclass
from errno import EAFNOSUPPORT, ENOSYS, EPERM

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_CLONE_NEWUSER = 0x10000000
# Unix, IPv4, IPv6, netlink: all of them belong to the sandbox's own network namespace.  AF_VSOCK would not.
_FAMILIES = (1, 2, 10, 16)
_X32_BIT = 0x40000000


@dataclass(frozen=True)
class _Calls:
    arch: int
    refused: tuple[int, ...]
    clone: int
    unshare: int
    socket: int


_BY_MACHINE = {
    # add_key request_key keyctl bpf userfaultfd perf_event_open open_by_handle_at setns
    "x86_64": _Calls(0xC000003E, (248, 249, 250, 321, 323, 298, 304, 308), 56, 272, 41),
    "aarch64": _Calls(0xC00000B7, (217, 218, 219, 280, 282, 241, 265, 268), 220, 97, 198),
}
_ABSENT = (425, 426, 427, 435)  # io_uring and clone3, whose arguments a filter cannot read; same on both machines


def seccomp_program() -> bytes | None:
    """The filter for this machine in the kernel's form; None where none is known."""
    calls = _BY_MACHINE.get(platform.machine())
    if calls is None:
        return None
    lines = [
        _load(4),
        _jump(0x15, calls.arch, 1, 0),
        _answer(_ERRNO | ENOSYS),
        _load(0),
        _jump(0x35, _X32_BIT, 0, 1),
        _answer(_ERRNO | ENOSYS),
    ]
    for number in _ABSENT:
        lines += [_jump(0x15, number, 0, 1), _answer(_ERRNO | ENOSYS)]
    for number in calls.refused:
        lines += [_jump(0x15, number, 0, 1), _answer(_ERRNO | EPERM)]
    for number in (calls.clone, calls.unshare):
        lines += [_jump(0x15, number, 0, 4), _load(16), _jump(0x45, _CLONE_NEWUSER, 0, 1)]
        lines += [_answer(_ERRNO | EPERM), _answer(_ALLOW)]
    lines += [_jump(0x15, calls.socket, 0, len(_FAMILIES) + 2), _load(16)]
    for place, family in enumerate(_FAMILIES):
        lines.append(_jump(0x15, family, len(_FAMILIES) - place, 0))
    lines += [_answer(_ERRNO | EAFNOSUPPORT), _answer(_ALLOW)]
    return b"".join(lines)


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", 0x20, 0, 0, offset)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _answer(value: int) -> bytes:
    return struct.pack("=HBBI", 0x06, 0, 0, value)

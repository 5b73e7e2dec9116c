#!/usr/bin/env python3
"""`braid top` on a terminal: top.py BRAID. Says `all of it` at its end.

The terminal is of 24 rows and 80 columns at first, then of 50 and 200. What is drawn is kept as a screen would:
each frame begins at the top, each line ends with what clears its rest.
"""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

pid, screen = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "top", "--interval", "0.3"])


def resize(rows, columns):
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


said = b""


def frame(what, condition):
    """Waits for a frame that is as it should be; its lines."""
    global said
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([screen], [], [], 1)
        if ready:
            said += os.read(screen, 1 << 16)
        frames = said.decode(errors="replace").split("\x1b[H")
        # The last one may not be whole yet.
        for one in frames[1:-1][-1:]:
            lines = [re.sub("\x1b\\[[0-9?]*[a-zA-Z]", "", line) for line in re.split("\r+\n", one)]
            if condition(lines):
                return lines
    raise AssertionError(f"waited in vain: {what}: {said[-2000:]!r}")


resize(24, 80)
small = frame("a frame at 80 columns", lambda lines: max(map(len, lines)) <= 80 and "p99" in lines[0])
assert said.startswith(b"\x1b[?1049h\x1b[?25l"), said[:40]
assert len(small) == 24 and small[-1].startswith("\u2026 and "), small
for head in ["volume", "read/s", "write/s", "p99", "errors"]:
    assert head in small[0], small[0]
print("\n".join(small))
resize(50, 200)
large = frame("a frame at 200 columns", lambda lines: "mean" in lines[0] and "queue" in lines[0])
assert len(large) > 24 and max(map(len, large)) <= 200, large
print("\n".join(large))
# A key counts at once, and what is typed is not shown.
names = [line.split()[0] for line in large if line.startswith("  ")]
os.write(screen, b"b")
frame("another order", lambda lines: [line.split()[0] for line in lines if line.startswith("  ")] != names)
os.write(screen, b"q")
rest = b""
while True:
    try:
        part = os.read(screen, 1 << 16)
    except OSError:
        break
    if not part:
        break
    rest += part
_, status = os.waitpid(pid, 0)
assert status == 0, status
assert rest.endswith(b"\x1b[?25h\x1b[?1049l"), rest[-60:]
print("all of it")

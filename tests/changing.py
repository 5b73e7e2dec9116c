"""Writes a device directly from memory that another process changes meanwhile: changing.py DEVICE BYTES

Prints how many writes arrived with bytes of several moments: without one, the memory did not change during a write.
"""

import mmap
import os
import signal
import sys

LEN = 64 << 10
device, size = sys.argv[1], int(sys.argv[2])
data, back = mmap.mmap(-1, LEN), mmap.mmap(-1, LEN)
parent, child = os.getpid(), os.fork()
if child == 0:
    value = 0
    while os.getppid() == parent:
        value = (value + 1) % 256
        data[:] = bytes([value]) * LEN
    os._exit(0)
offsets = range(0, size, LEN)
disk = os.open(device, os.O_RDWR | os.O_DIRECT)
try:
    for offset in offsets:
        if os.pwrite(disk, data, offset) != LEN:
            sys.exit(f"a short write at {offset}")
    os.fsync(disk)
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
torn = 0
for offset in offsets:
    os.preadv(disk, [back], offset)
    torn += len(set(back[::512])) > 1
print(torn)

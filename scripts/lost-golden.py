#!/usr/bin/env python3
"""Make an array with a file system that was created anew in another order, by kernel md and mdadm.

    lost-golden.py KLAB OUT_DIR        as it was made: lost-golden.py "$KLAB" testdata/md/lost

KLAB boots a kernel (`klab run`, engine $KLAB_ENGINE). OUT_DIR/NAME/ gets the members, packed as crates/files/src/sparse.rs
has it, and manifest.json: the members by role, and the SHA-256 of the content. Python 3 standard library only.
"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

MIB = 1 << 20
NAME = "raid5-4-recreated"
# The members by role, as the array was made first, and then.
FIRST, AGAIN = [2, 0, 3, 1], [0, 1, 2, 3]
GUEST = r"""
set -eu
S=$KLAB_SHARE; D=($KLAB_DISKS); mkdir -p $S
create() { mdadm --create /dev/md0 --run --quiet --homehost=nas --name=$1 -l5 -n4 -c16 --size=4096 --data-offset=1024 --bitmap=none --assume-clean "${@:2}"; }
modprobe -q ext4 || true
create old ${D[2]} ${D[0]} ${D[3]} ${D[1]}
mkfs.ext4 -q -F -b 1024 -N 640 -O metadata_csum,^has_journal -E nodiscard,lazy_itable_init=0 /dev/md0
mount -t ext4 /dev/md0 /mnt
for d in $(seq 8); do mkdir /mnt/folder$d; for f in $(seq 60); do : > /mnt/folder$d/file$f; done; seq $((d * 200)) > /mnt/folder$d/numbers; done
umount /mnt
echo check > /sys/block/md0/md/sync_action; mdadm --wait /dev/md0 2>/dev/null || true
cat /sys/block/md0/md/mismatch_cnt > $S/mismatches
dd if=/dev/md0 of=$S/content bs=64K status=none
mdadm -q --stop /dev/md0
create new ${D[0]} ${D[1]} ${D[2]} ${D[3]}
mdadm -q --stop /dev/md0; sync
uname -r > $S/kernel; mdadm --version 2> $S/mdadm
"""


def packed(image):
    sectors = [image[at:at + 512] for at in range(0, len(image), 512)]
    held = [struct.pack("<I", index) + sector for index, sector in enumerate(sectors) if sector.strip(b"\0")]
    return struct.pack("<I", len(sectors)) + b"".join(held)


def main(argv):
    if len(argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    out = pathlib.Path(argv[2]) / NAME
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        share = pathlib.Path(work) / "share"
        share.mkdir()
        disks = [pathlib.Path(work) / f"m{index}.img" for index in range(4)]
        for disk in disks:
            disk.write_bytes(bytes(5 * MIB + 64 * 1024))
        engine = os.environ.get("KLAB_ENGINE")
        words = [argv[1], "run", "--share", str(share), *(["--engine", engine] if engine else [])]
        words += [word for disk in disks for word in ("--disk", str(disk))]
        subprocess.run([*words, "--", GUEST], check=True)
        read = lambda name: (share / name).read_text().strip()
        assert read("mismatches") == "0", "parity must agree"
        content = (share / "content").read_bytes()
        for index, disk in enumerate(disks):
            (out / f"m{index}.packed").write_bytes(packed(disk.read_bytes()))
        manifest = {
            "title": "raid5 of 4 with an ext4, created anew with --assume-clean and its members in another order",
            "level": "raid5", "layout": "left-symmetric", "chunk_bytes": 16384, "data_offset_bytes": MIB,
            "members_by_role": FIRST, "created_anew_as": AGAIN, "content_bytes": len(content),
            "content_sha256": hashlib.sha256(content).hexdigest(),
            "made_with": {"kernel": read("kernel"), "mdadm": read("mdadm")}}
        (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

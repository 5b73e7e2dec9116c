#!/usr/bin/env python3
"""Make arrays that kernel md broke, as golden arrays: members dropped one after the other while data were written.

    broken-golden.py KLAB PATTERN_PY OUT_DIR

KLAB boots a kernel (`klab run`), PATTERN_PY makes the content. OUT_DIR/NAME/ gets manifest.json and the images; then
`compact-golden.py OUT_DIR testdata/md/broken` writes them small. Python 3 standard library only.
"""
import hashlib
import importlib.util
import json
import pathlib
import subprocess
import sys

MIB = 1 << 20
CHUNK = 64 << 10
# Name, bitmap, members that are dropped before and after the second piece is written.
CASES = [("raid5-4-two-dropped", False), ("raid5-4-two-dropped-bitmap", True)]
GUEST = r"""
set -eu
S=$KLAB_SHARE; D=($KLAB_DISKS); mkdir -p $S
%(create)s
mdadm --wait /dev/md0 2>/dev/null || true
put() { dd if=$S/piece$1 of=/dev/md0 bs=64K seek=$2 oflag=direct conv=fsync status=none; }
drop() { mdadm -q /dev/md0 --fail $1; for i in $(seq 40); do mdadm -q /dev/md0 --remove $1 2>/dev/null && return; sleep 0.1; done; exit 9; }
put 0 0; sleep %(quiet)s
drop ${D[3]}
put 1 16; sleep 0.6
mdadm --detail /dev/md0 > $S/detail; cat /proc/mdstat > $S/mdstat
for f in level layout chunk_size raid_disks component_size metadata_version array_state; do cat /sys/block/md0/md/$f > $S/sysfs.$f; done
mdadm -q /dev/md0 --fail ${D[2]} 2>/dev/null || true       # busy, says a kernel whose array fails by it
grep -q faulty /sys/block/md0/md/dev-$(basename ${D[2]})/state
dd if=$S/piece1 of=/dev/md0 bs=64K seek=40 oflag=direct conv=fsync status=none 2>/dev/null && exit 8 || true
mdadm -q --stop /dev/md0; sync
uname -r > $S/kernel; mdadm --version 2> $S/mdadm
"""


def number(image, at, size):
    return int.from_bytes(image[4096 + at:4096 + at + size], "little")


def make(klab, pattern, out, name, bitmap):
    folder = out / name
    share = folder / "share"
    share.mkdir(parents=True)
    size = 3 * 2 * MIB
    pieces = [{"offset": 0, "length": size, "key": f"{name}/0"},
              {"offset": 16 * CHUNK, "length": 8 * CHUNK, "key": f"{name}/1"}]
    for index, piece in enumerate(pieces):
        with open(share / f"piece{index}", "wb") as file:
            for chunk in pattern.chunks(piece["key"], piece["offset"], piece["length"]):
                file.write(chunk)
    uuid = hashlib.md5(name.encode()).hexdigest()
    uuid = ":".join(uuid[i:i + 8] for i in range(0, 32, 8))
    bits = "--bitmap=internal --bitmap-chunk=64K" if bitmap else "--bitmap=none"
    create = (f"mdadm --create /dev/md0 --run --quiet --uuid={uuid} --homehost=nas --name=home -l5 -n4 -c64 --size=2048 "
              f"--data-offset=1024 --assume-clean {bits} ${{D[@]}}")
    disks = [folder / f"m{index}.img" for index in range(4)]
    for disk in disks:
        with open(disk, "wb") as file:
            file.truncate(3 * MIB + 64 * 1024)
    script = GUEST % {"create": create, "quiet": 12 if bitmap else 0.6}
    argv = [klab, "run", "--share", str(share), *(w for disk in disks for w in ("--disk", str(disk))), "--", script]
    subprocess.run(argv, check=True)
    read = lambda file: (share / file).read_text().strip()
    members = []
    for index, disk in enumerate(disks):
        image = disk.read_bytes()
        examine = subprocess.run(["mdadm", "--examine", disk.name], cwd=folder, stdout=subprocess.PIPE, text=True).stdout
        members.append({
            "index": index, "bytes": len(image), "role": index, "state": {2: "missing", 3: "stale"}.get(index, "in_sync"),
            "file": disk.name, "sha256": hashlib.sha256(image).hexdigest(), "events": number(image, 200, 8),
            "super_offset_bytes": 4096, "data_offset_bytes": number(image, 128, 8) * 512,
            "data_bytes": number(image, 136, 8) * 512, "feature_map": number(image, 8, 4), "examine": examine or None})
    names = ("level", "layout", "chunk_size", "raid_disks", "component_size", "metadata_version", "array_state")
    manifest = {
        "name": name, "title": "raid5 of 4: member 3 dropped, then 512 KiB written, then member 2 dropped", "expect": "refuse_or_read",
        "notes": "The array failed when member 2 left, so members 0, 1 and 2 have all that was written.",
        "level": "raid5", "layout_number": 2, "layout": "left-symmetric", "chunk_bytes": CHUNK, "raid_disks": 4,
        "metadata": "1.2", "uuid": uuid, "array_bytes": size, "sha256": pattern.content_sha256(size, pieces),
        "pattern": pieces, "degraded": 2, "clean_shutdown": True, "members": members, "detail": read("detail"),
        "mdstat": read("mdstat"), "sysfs": {f: read("sysfs." + f) for f in names}, "assemble": {}, "create": create,
        "steps": "put 0; drop 3; put 1; fail 2; stop",
        "made_with": {"engine": "klab", "kernel": read("kernel"), "mdadm": read("mdadm")}}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def main(argv):
    if len(argv) != 4:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    spec = importlib.util.spec_from_file_location("pattern", argv[2])
    pattern = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pattern)
    for name, bitmap in CASES:
        make(argv[1], pattern, pathlib.Path(argv[3]), name, bitmap)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

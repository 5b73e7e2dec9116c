#!/usr/bin/env python3
"""Write golden arrays small: each member image becomes a list of runs.

    compact-golden.py SOURCE_DIR DEST_DIR [NAME...]

SOURCE_DIR/NAME/ holds manifest.json and the member images mN.img or mN.img.zst (`zstd` unpacks
them). DEST_DIR/NAME/ gets manifest.json, without what no test needs, and mN.runs. Each mN.runs is
expanded again and must have the SHA-256 of its image. The format of runs and the pattern that the
arrays hold are described in crates/golden/src/lib.rs. Python 3 standard library only.
"""
import functools
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys

SECTOR = 512
# A stretch of equal bytes shorter than this stays in its `hex` line.
SHORTEST_FILL = 12
# The longest group of lines that `repeat` is tried with: rows until a rotation comes round.
LONGEST_GROUP = 64


# ---- the pattern -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 20)
def token(key, block):
    """The 8 bytes that fill the array's 4 KiB block `block`, as a little-endian number."""
    digest = hashlib.blake2b(struct.pack("<Q", block), key=key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def content(pieces, age, sector):
    """(head, token) of an array sector after the first `age` pieces were written; (0, 0) before."""
    for piece in reversed(pieces[:age]):
        if piece["offset"] <= sector * SECTOR < piece["offset"] + piece["length"]:
            return sector, token(piece["key"], sector >> 3)
    return 0, 0


def double(word):
    """Eight bytes of GF(2^8) at once, each times g = 2, modulo x^8 + x^4 + x^3 + x^2 + 1."""
    high = word & 0x8080808080808080
    return ((word ^ high) << 1) ^ ((high >> 7) * 0x1D)


def parity(pieces, age, shape, sector):
    """(head, token) of P (shape: disks, stride) or Q (shape: disks, stride, first) of a row.

    `sector` is the array sector on the row's data disk 0, disk i's is `stride` * i further on.
    Q is Horner's rule, from the disk with the highest power of g down to `first`, which has g^0.
    """
    disks, stride, *first = shape
    head = tok = 0
    for power in reversed(range(disks)):
        disk = (power + first[0]) % disks if first else power
        if first:
            head, tok = double(head), double(tok)
        h, t = content(pieces, age, sector + disk * stride)
        head, tok = head ^ h, tok ^ t
    return head, tok


def sum_of_powers(pieces, age, shape, sector):
    """(head, token) of a Q whose powers of g are not in turn (shape: stride, the powers).

    The powers are digits, data disk 0's first.
    """
    stride, powers = shape
    head = tok = 0
    for disk, power in enumerate(map(int, powers)):
        h, t = content(pieces, age, sector + disk * stride)
        for _ in range(power):
            h, t = double(h), double(t)
        head, tok = head ^ h, tok ^ t
    return head, tok


def sector_of(pieces, kind, age, shape, sector):
    """(head, token) of one sector of a `data`, `p`, `q` or `g` run."""
    if kind == "data":
        return content(pieces, age, sector)
    if kind == "g":
        return sum_of_powers(pieces, age, shape, sector)
    return parity(pieces, age, shape, sector)


def powers_of_ddf(members):
    """Powers of g where each member has that of its place: the DDF layouts, with P beside Q."""
    for p in range(members):
        for q in ((p + 1) % members, (p - 1) % members):
            places = [place for place in range(members) if place not in (p, q)]
            for first in range(len(places)):
                yield "".join(map(str, places[first:] + places[:first]))


# ---- an image to runs --------------------------------------------------------------------------
# A run is (kind, fixed, start, count): `fixed` is what `repeat` leaves alone, `start` what it moves.


def candidates(manifest, member, at, head):
    """Formulas that may give the member's sector `at`, likeliest first: (kind, fixed, start)."""
    ages = range(len(manifest["pattern"]), 0, -1)
    for age in ages:
        yield "data", (age,), head
    lost = {"raid4": 1, "raid5": 1, "raid6": 2}.get(manifest["level"])
    at -= member["data_offset_bytes"] // SECTOR
    if lost is None or at < 0:
        return
    disks, stride = manifest["raid_disks"] - lost, manifest["chunk_bytes"] // SECTOR
    row, inside = divmod(at, stride)
    start = row * disks * stride + inside
    for age in ages:
        yield "p", (age, disks, stride), start
        for first in range(disks) if lost == 2 else ():
            yield "q", (age, disks, stride, first), start
        for powers in sorted(set(powers_of_ddf(disks + 2))) if lost == 2 else ():
            yield "g", (age, stride, powers), start


def literal(data):
    """Runs for bytes that no formula gives: stretches of equal bytes, and hexadecimal."""
    at = 0
    for match in re.finditer(rb"(?s)(.)\1{%d,}" % (SHORTEST_FILL - 1), data):
        if match.start() > at:
            yield "hex", (data[at:match.start()].hex(),), None, match.start() - at
        yield "fill", (match[1].hex(),), None, len(match[0])
        at = match.end()
    if at < len(data):
        yield "hex", (data[at:].hex(),), None, len(data) - at


def runs_of(manifest, member, image):
    """The image's runs; neighbours of one kind are one run."""
    pieces = manifest["pattern"]
    runs, raw = [], bytearray()
    if len(image) % SECTOR:
        raise SystemExit("an image must be whole sectors")

    def add(kind, fixed, start, count):
        if runs and runs[-1][:2] == (kind, fixed):
            last = runs[-1]
            if start is None and kind == "fill" or start is not None and last[2] + last[3] == start:
                runs[-1] = (kind, fixed, last[2], last[3] + count)
                return
        runs.append((kind, fixed, start, count))

    def formula(at, sector):
        if sector[8:] != sector[8:16] * 63 or not any(sector):
            return None
        here = struct.unpack("<QQ", sector[:16])
        tries = candidates(manifest, member, at, here[0])
        if runs and runs[-1][2] is not None:
            kind, fixed, start, count = runs[-1]
            tries = [(kind, fixed, start + count), *tries]
        for kind, fixed, start in tries:
            if sector_of(pieces, kind, fixed[0], fixed[1:], start) == here:
                return kind, fixed, start
        return None

    for at in range(len(image) // SECTOR):
        sector = image[at * SECTOR:(at + 1) * SECTOR]
        found = formula(at, sector)
        if found is None:
            raw += sector
            continue
        for run in literal(bytes(raw)):
            add(*run)
        raw.clear()
        add(*found, 1)
    for run in literal(bytes(raw)):
        add(*run)
    return runs


def line(run):
    """One run as a line of text."""
    kind, fixed, start, count = run
    words = [kind, *fixed]
    if start is not None:
        words.append(start)
    if kind != "hex":
        words.append(count)
    return " ".join(str(word) for word in words)


def step_between(one, two):
    """How far `start` moved between two equal groups of runs; None if they are not equal."""
    steps = set()
    for a, b in zip(one, two):
        if (a[0], a[1], a[3]) != (b[0], b[1], b[3]):
            return None
        if a[2] is not None:
            steps.add(b[2] - a[2])
    return steps.pop() if len(steps) == 1 and min(steps) >= 0 else None


def render(runs):
    """The text of the runs, groups that come again written as `repeat TIMES STEP` ... `end`."""
    out, at = [], 0
    while at < len(runs):
        best = (0, 0, 0, 0)  # lines saved, group's length, times, step
        for length in range(1, LONGEST_GROUP + 1):
            group = runs[at:at + length]
            if len(group) < length:
                break
            step = step_between(group, runs[at + length:at + 2 * length])
            if step is None or at + 2 * length > len(runs):
                continue
            times = 2
            while at + (times + 1) * length <= len(runs):
                here = at + times * length
                if step_between(runs[here - length:here], runs[here:here + length]) != step:
                    break
                times += 1
            best = max(best, (length * (times - 1) - 2, -length, times, step))
        if best[0] > 0:
            length = -best[1]
            out.append(f"repeat {best[2]} {best[3]}")
            out += [line(run) for run in runs[at:at + length]]
            out.append("end")
            at += length * best[2]
        else:
            out.append(line(runs[at]))
            at += 1
    return "\n".join(out) + "\n"


# ---- and back ----------------------------------------------------------------------------------


def expand(manifest, text):
    """The image that a text of runs stands for."""
    pieces = manifest["pattern"]
    image = bytearray()

    def run(words, moved):
        kind, *rest = words
        if kind == "hex":
            image.extend(bytes.fromhex(rest[0]))
        elif kind == "fill":
            image.extend(bytes.fromhex(rest[0]) * int(rest[1]))
        else:
            age, *shape, start, count = map(int, rest)
            if kind == "g":
                shape = shape[0], rest[2]
            for sector in range(start + moved, start + moved + count):
                head, tok = sector_of(pieces, kind, age, shape, sector)
                image.extend(struct.pack("<Q", head) + struct.pack("<Q", tok) * 63)

    group = None
    for words in map(str.split, text.splitlines()):
        if words[0] == "repeat":
            group, times, step = [], int(words[1]), int(words[2])
        elif words[0] == "end":
            for turn in range(times):
                for inner in group:
                    run(inner, turn * step)
            group = None
        elif group is not None:
            group.append(words)
        else:
            run(words, 0)
    return image


# ---- files -------------------------------------------------------------------------------------


def read_image(folder, index):
    """A member's image, unpacked."""
    plain = folder / f"m{index}.img"
    if plain.exists():
        return plain.read_bytes()
    packed = folder / f"m{index}.img.zst"
    return subprocess.run(["zstd", "-dcq", packed], stdout=subprocess.PIPE, check=True).stdout


def compact(source, dest):
    """Write one golden array small; the bytes written and those of them that are literal."""
    manifest = json.loads((source / "manifest.json").read_text())
    manifest.pop("set", None)
    dest.mkdir(parents=True, exist_ok=True)
    written = literals = 0
    for member in manifest["members"]:
        if member.pop("file") is None:
            continue
        image = read_image(source, member["index"])
        if len(image) != member["bytes"] or hashlib.sha256(image).hexdigest() != member["sha256"]:
            raise SystemExit(f"{source}: the image of member {member['index']} is not the manifest's")
        text = render(runs_of(manifest, member, image))
        if hashlib.sha256(expand(manifest, text)).hexdigest() != member["sha256"]:
            raise SystemExit(f"{source}: the runs of member {member['index']} do not give its image")
        (dest / f"m{member['index']}.runs").write_text(text)
        written += len(text)
        literals += sum(len(row) for row in text.splitlines() if row.startswith("hex"))
    text = json.dumps(manifest, indent=1) + "\n"
    (dest / "manifest.json").write_text(text)
    return written + len(text), literals


def main(argv):
    if len(argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    source, dest = pathlib.Path(argv[1]), pathlib.Path(argv[2])
    names = argv[3:] or sorted(path.parent.name for path in source.glob("*/manifest.json"))
    total = 0
    for name in names:
        size, literals = compact(source / name, dest / name)
        total += size
        print(f"{name}: {size} bytes, {literals} of them hexadecimal", flush=True)
    print(f"{len(names)} arrays, {total} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

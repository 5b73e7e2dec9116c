//! Real NBD clients against a real volume: what libnbd's, QEMU's and fio's programs see, write
//! and read back. Each test runs with every driver that this machine allows.

mod common;

use std::path::Path;

use common::{KIB, MIB, Scratch, Tool, assert_same_bytes, drivers, skip_without};
use serde_json::json;

/// Stacks of 32 MiB and a little more or less, of every level and of unequal members.
const STACKS: [(&str, &str); 5] = [
    ("ram", "ram(32M)"),
    ("file", "./a.img"),
    ("linear", "linear(./a.img, ram(5M), ./small.img)"),
    ("raid0", "raid0(chunk=64K, ./a.img, ./b.img, ./c.img, ./d.img)"),
    ("unequal raid0", "raid0(chunk=20K, layout=original, ./a.img, ./small.img, ./c.img)"),
];

/// The members that [`STACKS`] name, all of them holes.
fn with_members() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img", "d.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch.sparse("small.img", 3 * MIB + 24 * KIB);
    scratch
}

fn text(path: &Path) -> &str {
    path.to_str().expect("scratch paths are plain")
}

/// The size of an export, as libnbd sees it.
fn size_of(uri: &str) -> u64 {
    let output = Tool::new("nbdinfo").args(["--size", uri]).run().ok();
    output.out.trim().parse().expect("a size in bytes")
}

#[test]
fn nbdinfo_sees_sizes_flags_and_block_sizes() {
    skip_without!("nbdinfo");
    for driver in drivers() {
        let scratch = with_members();
        let stack = STACKS[3].1;
        let volume = scratch.serve(stack, &["--io", driver, "--name", "stripes"]);
        let plain = Tool::new("nbdinfo").arg(volume.uri()).run().ok();
        for line in ["export-size: 33554432 (32M)", "is_read_only: false", "base:allocation"] {
            assert!(plain.out.contains(line), "{line:?} is not in {plain}");
        }
        let info = Tool::new("nbdinfo").args(["--json", volume.uri()]).run().ok().json();
        assert_eq!(info["protocol"], "newstyle-fixed");
        assert_eq!(info["structured"], true);
        let export = &info["exports"][0];
        for (key, value) in [
            ("export-name", json!("stripes")),
            ("export-size", json!(32 * MIB)),
            ("contexts", json!(["base:allocation"])),
            ("block_size_minimum", json!(1)),
            ("block_size_preferred", json!(4096)),
            ("block_size_maximum", json!(48 * MIB)),
        ] {
            assert_eq!(export[key], value, "{key} in {info:#}");
        }
        for flag in ["cache", "df", "flush", "fua", "multi_conn", "trim", "zero"] {
            assert_eq!(export[format!("can_{flag}")], true, "can_{flag} in {info:#}");
        }
        let list = Tool::new("nbdinfo").args(["--list", volume.uri()]).run().ok();
        assert!(list.out.contains("export=\"stripes\""), "{list}");
    }
}

#[test]
fn nbdinfo_sees_that_a_volume_is_read_only() {
    skip_without!("nbdinfo");
    let scratch = with_members();
    let volume = scratch.serve(STACKS[3].1, &["--read-only"]);
    let info = Tool::new("nbdinfo").args(["--json", volume.uri()]).run().ok().json();
    let export = &info["exports"][0];
    assert_eq!(export["is_read_only"], true);
    for flag in ["trim", "zero"] {
        assert_eq!(export[format!("can_{flag}")], false, "can_{flag} in {info:#}");
    }
}

/// The extents of a volume as libnbd reads them: offset, length, whether it is a hole of zeroes.
fn map(uri: &str) -> Vec<(u64, u64, bool)> {
    let output = Tool::new("nbdinfo").args(["--map", "--json", uri]).run().ok();
    let extents = output.json();
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let extents = extents.as_array().expect("a list").iter();
    extents
        .map(|extent| {
            let hole = match number(&extent["type"]) {
                0 => false,
                3 => true,
                other => panic!("an extent that is half a hole ({other}): {output}"),
            };
            (number(&extent["offset"]), number(&extent["length"]), hole)
        })
        .collect()
}

#[test]
fn nbdinfo_maps_the_holes_of_files_and_of_memory() {
    skip_without!("nbdinfo", "qemu-io");
    for driver in drivers() {
        // 64 KiB of data at 1 MiB and at 3 MiB: no file system allocates in larger pieces.
        for stack in ["./a.img", "ram(8M)"] {
            let scratch = with_members();
            let volume = scratch.serve(stack, &["--io", driver]);
            assert_eq!(map(volume.uri()), [(0, 8 * MIB, true)], "{stack}, all new");
            qemu_io(volume.uri(), &["write -P 1 1M 64k", "write -P 2 3M 64k", "flush"]);
            let piece = 64 * KIB;
            let expected = [
                (0, MIB, true),
                (MIB, piece, false),
                (MIB + piece, 2 * MIB - piece, true),
                (3 * MIB, piece, false),
                (3 * MIB + piece, 5 * MIB - piece, true),
            ];
            let found = map(volume.uri());
            if stack.starts_with("ram") {
                // Memory comes in huge pages: the data are where they are, perhaps with more.
                assert_covers(&found, &expected);
            } else {
                assert_eq!(found, expected, "{stack}");
            }
        }
        // Chunk 17 of 64 KiB is the fifth of member 1: 1 MiB + 64 KiB of the volume.
        let scratch = with_members();
        let stack = "raid0(chunk=64K, ./a.img, ./b.img, ./c.img, ./d.img)";
        let volume = scratch.serve(stack, &["--io", driver]);
        qemu_io(volume.uri(), &["write -P 3 1088k 64k", "flush"]);
        let piece = 64 * KIB;
        let (start, end) = (17 * piece, 18 * piece);
        let expected = [(0, start, true), (start, piece, false), (end, 32 * MIB - end, true)];
        assert_eq!(map(volume.uri()), expected, "{stack}");
    }
}

/// Checks that the extents have no gap and that no data is called a hole.
fn assert_covers(found: &[(u64, u64, bool)], expected: &[(u64, u64, bool)]) {
    let mut next = 0;
    for (offset, length, _) in found {
        assert_eq!(*offset, next, "no gap in {found:?}");
        next += length;
    }
    let overlaps = |a: &&(u64, u64, bool), b: &(u64, u64, bool)| a.0 < b.0 + b.1 && b.0 < a.0 + a.1;
    for data in expected.iter().filter(|extent| !extent.2) {
        let called_hole =
            found.iter().filter(|extent| overlaps(extent, data)).any(|extent| extent.2);
        assert!(!called_hole, "data at {} is called a hole: {found:?}", data.0);
    }
}

#[test]
fn nbdcopy_copies_in_and_out() {
    skip_without!("nbdcopy", "nbdinfo");
    for driver in drivers() {
        for (name, stack) in STACKS {
            let scratch = with_members();
            let volume = scratch.serve(stack, &["--io", driver]);
            let source = scratch.file("source", size_of(volume.uri()), 1);
            let copy = |from: &str, to: &str| {
                let options = ["--flush", "--connections=4", "--requests=32"];
                Tool::new("nbdcopy").args(options).args([from, to]).run().ok();
            };
            copy(text(&source), volume.uri());
            let back = scratch.join("back");
            copy(volume.uri(), text(&back));
            println!("{driver}, {name}");
            assert_same_bytes(&source, &back);
        }
    }
}

#[test]
fn nbdcopy_copies_from_one_volume_to_another() {
    skip_without!("nbdcopy");
    let scratch = with_members();
    let source = scratch.file("source", 8 * MIB, 2);
    let from = scratch.serve("./source", &["--read-only"]);
    // Into stripes from memory, whose map has holes.
    let to = scratch.serve("raid0(chunk=4K, ram(3M), ram(3M), ram(3M))", &[]);
    Tool::new("nbdcopy").args([from.uri(), to.uri()]).run().ok();
    let back = scratch.join("back");
    Tool::new("nbdcopy").args([to.uri(), text(&back)]).run().ok();
    scratch.resize("back", 8 * MIB);
    assert_same_bytes(&source, &back);
}

#[test]
fn nbdkit_serves_what_is_copied_in() {
    skip_without!("nbdcopy", "nbdkit");
    let scratch = with_members();
    let volume = scratch.serve(STACKS[3].1, &[]);
    let nbdkit = ["nbdkit", "--exit-with-parent", "pattern", "32M"];
    let copy = Tool::new("nbdcopy").args(["--", "["]).args(nbdkit).args(["]", volume.uri()]);
    copy.run().ok();
    let back = scratch.join("back");
    Tool::new("nbdcopy").args([volume.uri(), text(&back)]).run().ok();
    // nbdkit's pattern: every 8 bytes are their own offset, with the high byte first.
    let bytes = std::fs::read(&back).unwrap();
    for (index, word) in bytes.chunks(8).enumerate() {
        assert_eq!(word, (8 * index as u64).to_be_bytes(), "at word {index}");
    }
}

#[test]
fn qemu_img_converts_and_compares() {
    skip_without!("qemu-img", "nbdinfo");
    for driver in drivers() {
        for (name, stack) in STACKS {
            let scratch = with_members();
            let volume = scratch.serve(stack, &["--io", driver]);
            let source = scratch.file("source", size_of(volume.uri()), 3);
            println!("{driver}, {name}");
            let qemu_img = |args: &[&str]| Tool::new("qemu-img").args(args).run();
            let (raw, uri) = (["-f", "raw"], volume.uri());
            qemu_img(&["convert", "-n", raw[0], raw[1], "-O", "raw", text(&source), uri]).ok();
            qemu_img(&["compare", "-f", "raw", "-F", "raw", text(&source), uri]).ok();
            let qcow2 = scratch.join("back.qcow2");
            qemu_img(&["convert", "-f", "raw", "-O", "qcow2", uri, text(&qcow2)]).ok();
            qemu_img(&["compare", "-f", "qcow2", "-F", "raw", text(&qcow2), text(&source)]).ok();
            // One byte makes the difference.
            qemu_io(uri, &["write -P 0x11 1M 512"]);
            let different = qemu_img(&["compare", "-f", "raw", "-F", "raw", text(&source), uri]);
            assert_eq!(different.code(), 1, "{different}");
        }
    }
}

/// Runs commands of qemu-io, all of which must work.
fn qemu_io(uri: &str, commands: &[&str]) {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    // Discards and writes of zeroes are passed on, not guessed at.
    let output =
        Tool::new("qemu-io").args(["-f", "raw", "-d", "unmap"]).args(commands).arg(uri).run();
    let output = output.ok();
    for word in ["failed", "error", "verification"] {
        assert!(!output.out.contains(word), "{output}");
    }
}

#[test]
fn qemu_io_reads_its_patterns_back() {
    skip_without!("qemu-io");
    for driver in drivers() {
        for (name, stack) in STACKS {
            let scratch = with_members();
            let volume = scratch.serve(stack, &["--io", driver]);
            println!("{driver}, {name}");
            qemu_io(
                volume.uri(),
                &[
                    "write -P 0xaa 0 1M",
                    // Over the ends of chunks and of blocks.
                    "write -P 0xbb 61k 7k",
                    "write -P 0xcc 512 512",
                    "write -f -P 0xdd 3M 68k",
                    "flush",
                    "read -P 0xcc 512 512",
                    "read -P 0xbb 61k 7k",
                    "read -P 0xaa 68k 64k",
                    "read -P 0xdd 3M 68k",
                    "write -z 128k 100k",
                    "read -P 0 128k 100k",
                    "write -z -u 512k 64k",
                    "read -P 0 512k 64k",
                    "read -P 0xaa 576k 64k",
                    "discard 256k 64k",
                    "read -P 0xaa 320k 64k",
                    "aio_write -P 0x21 4M 256k",
                    "aio_write -P 0x22 5M 256k",
                    "aio_write -z 6M 256k",
                    "aio_flush",
                    "aio_read -P 0x21 4M 256k",
                    "aio_read -P 0x22 5M 256k",
                    "aio_read -P 0 6M 256k",
                    "aio_flush",
                    "writev -P 0x31 7M 4k 8k 512 64k",
                    "readv -P 0x31 7M 64k 8k 4k 512",
                    // Parts of blocks.
                    "write -P 0x41 2000001 3",
                    "write -z 2000100 5000",
                    "aio_write -P 0x42 2000004 7",
                    "aio_write -P 0x43 2000011 1001",
                    "aio_flush",
                    "read -P 0 2000000 1",
                    "read -P 0x41 2000001 3",
                    "read -P 0x42 2000004 7",
                    "read -P 0x43 2000011 1001",
                    "read -P 0 2001012 4088",
                    "discard 2000003 2",
                    "read -P 0x41 2000003 1",
                ],
            );
        }
    }
}

/// A script for libnbd's shell, in which `h` is connected and `expect` catches what must fail.
fn nbdsh(uri: &str, before: &str, script: &str) {
    let prelude = "
import errno
def expect(number, call, *args, **named):
    try:
        call(*args, **named)
    except nbd.Error as error:
        assert error.errno == errno.errorcode[number], (error.errno, errno.errorcode[number])
    else:
        raise AssertionError('should have failed')
h.set_strict_mode(0)
";
    let script = format!("{prelude}\n{before}\nh.connect_uri('{uri}')\n{script}\nh.shutdown()\n");
    Tool::new("nbdsh").args(["-c", "-"]).input(script).run().ok();
}

/// Every command, whatever the style of replies.
const EVERY_COMMAND: &str = "
size = h.get_size()
assert size >= 16 << 20
assert h.pread(4096, 0) == bytes(4096)
data = bytes((7 * i) % 251 for i in range(70000 // 512 * 512))
h.pwrite(data, 61440)
assert h.pread(len(data), 61440) == data
h.pwrite(data[:512], size - 512, nbd.CMD_FLAG_FUA)
assert h.pread(512, size - 512) == data[:512]
h.zero(8192, 65536)
assert h.pread(8192, 65536) == bytes(8192)
assert h.pread(4096, 61440) == data[:4096]
h.zero(4096, 61440, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
assert h.pread(4096, 61440) == bytes(4096)
h.trim(4096, 1 << 20)
h.trim(65536, 1 << 20, nbd.CMD_FLAG_FUA)
h.cache(65536, 0)
h.flush()
# Out of range: at the end, over it, far beyond it.
for offset, length in [(size, 512), (size - 512, 1024), (1 << 62, 512)]:
    expect(errno.EINVAL, h.pread, length, offset)
    expect(errno.ENOSPC, h.pwrite, bytes(length), offset)
    expect(errno.ENOSPC, h.zero, length, offset)
    expect(errno.EINVAL, h.trim, length, offset)
# Parts of blocks.
assert h.pread(100, 61449) == bytes(100)
h.pwrite(data[:1001], 100001, nbd.CMD_FLAG_FUA)
h.zero(300, 100300)
h.trim(10, 100001)
assert h.pread(1003, 100000) == data[38560:38561] + data[:299] + bytes(300) + data[599:1001] + data[39562:39563]
# Of no length.
expect(errno.EINVAL, h.pread, 0, 0)
# And it goes on.
assert h.pread(512, size - 512) == data[:512]
";

#[test]
fn nbdsh_tries_every_command_in_both_styles() {
    skip_without!("nbdsh");
    for driver in drivers() {
        for (name, stack) in [STACKS[0], STACKS[3], STACKS[4]] {
            println!("{driver}, {name}");
            let simple = "h.set_request_structured_replies(False)";
            for style in [simple, "h.set_request_structured_replies(True)"] {
                let scratch = with_members();
                let volume = scratch.serve(stack, &["--io", driver]);
                nbdsh(volume.uri(), style, EVERY_COMMAND);
            }
        }
    }
}

#[test]
fn nbdsh_reads_chunks_and_block_status() {
    skip_without!("nbdsh");
    let scratch = with_members();
    let volume = scratch.serve("./a.img", &[]);
    let before = "h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)";
    let script = "
assert h.get_structured_replies_negotiated() and h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.pwrite(b'x' * 65536, 1 << 20, nbd.CMD_FLAG_FUA)
# In one piece if that is asked for; in pieces that cover it otherwise.
for flags in [0, nbd.CMD_FLAG_DF]:
    pieces = []
    def chunk(buf, offset, status, error):
        assert status == nbd.READ_DATA or status == nbd.READ_HOLE
        pieces.append((offset, len(buf)))
    data = h.pread_structured(131072, 1 << 20, chunk, flags)
    assert data == b'x' * 65536 + bytes(65536)
    assert sum(length for _, length in pieces) == 131072
    assert flags == 0 or len(pieces) == 1
extents = []
def extent(context, offset, entries, error):
    assert context == 'base:allocation'
    extents.extend(zip(entries[::2], entries[1::2]))
h.block_status(4 << 20, 0, extent)
assert extents[:2] == [(1 << 20, 3), (65536, 0)], extents
extents.clear()
h.block_status(4 << 20, 0, extent, nbd.CMD_FLAG_REQ_ONE)
assert extents == [(1 << 20, 3)], extents
";
    nbdsh(volume.uri(), before, script);
}

#[test]
fn nbdsh_cannot_write_what_is_read_only() {
    skip_without!("nbdsh");
    let scratch = with_members();
    scratch.file("a.img", 8 * MIB, 4);
    let before = scratch.read("a.img");
    for style in ["False", "True"] {
        let volume = scratch.serve("./a.img", &["--read-only"]);
        let style = format!("h.set_request_structured_replies({style})");
        let script = "
assert h.is_read_only()
expect(errno.EPERM, h.pwrite, bytes(512), 0)
expect(errno.EPERM, h.zero, 512, 0)
expect(errno.EPERM, h.trim, 512, 0)
h.flush()
assert h.pread(512, 0) != bytes(512)
";
        nbdsh(volume.uri(), &style, script);
    }
    assert!(scratch.read("a.img") == before, "nothing was written");
}

#[test]
fn fio_verifies_what_sixteen_jobs_wrote() {
    skip_without!("fio");
    let engine = Tool::new("fio").arg("--enghelp=nbd").run();
    if !engine.status.success() || !engine.out.contains("uri") {
        println!("skipped: this fio has no NBD engine");
        return;
    }
    for driver in drivers() {
        let scratch = with_members();
        let volume = scratch.serve(STACKS[3].1, &["--io", driver, "--shards", "2"]);
        let uri = format!("--uri={}", volume.uri());
        let fio = Tool::new("fio")
            .args(["--name=verify", "--ioengine=nbd", &uri, "--thread", "--numjobs=16"])
            .args(["--rw=randwrite", "--bsrange=100-96k", "--bs_unaligned=1", "--iodepth=8"])
            .args(["--size=2m", "--offset_increment=2m", "--randrepeat=1", "--group_reporting"])
            .args(["--verify=crc32c", "--do_verify=1", "--verify_fatal=1", "--fsync=64"])
            .folder(scratch.path());
        let output = fio.run().ok();
        assert!(output.out.contains("err= 0"), "{output}");
    }
}

//! braid's texts about superblocks that none of our arrays has are those of mdadm, if mdadm is installed:
//! golden superblocks and bitmaps with some of their fields overwritten.
//!
//! Left out are values that crash mdadm 4.2 (for a raid10 of no copies it divides by zero), and a bitmap's
//! feature bit without a bitmap: mdadm shows that bit as unset, braid the stored value.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use braid_md::Version;
use braid_md_text::examine::{self, Surroundings, Written};
use braid_mutate::Random;

/// A field's place, its width in bytes, and the values that are tried.
type Field = (usize, usize, &'static [u64]);

const FIELDS_1: &[Field] = &[
    (8, 4, &[0, 2, 4, 8, 16, 0x10, 0x44, 0x64, 128, 0x400, 0x800, 0x1000, 0x2002, 0x1004]),
    (32, 1, &[0, b'k' as u64, b'x' as u64]),
    (36, 1, &[0, b':' as u64, b'q' as u64]),
    (64, 8, &[0, 1_700_000_000, 0x1234_5600_0000_0001, 0xff_ffff_ffff]),
    (72, 4, &[0, 1, 4, 5, 6, 10, 0xffff_ffff, 0xffff_fffc, 0xffff_fffb, 0xffff_ff9c, 7]),
    (76, 4, &[0x102, 0x201, 0x10201, 0x30201, 0x202, 0x101]),
    (80, 8, &[0, 2048, 30720, 4_194_304, 40_000_000_000, 1 << 55, u64::MAX]),
    (88, 4, &[0, 1, 128, 1024, 1 << 31]),
    (92, 4, &[1, 2, 3, 4, 7, 30]),
    (96, 4, &[8, 0xffff_fff0, 0x0800_0008, 0x0800_fff0]),
    (100, 4, &[0, 5, 6, 33]),
    (104, 8, &[0, 20_000, 5_000_000]),
    (112, 4, &[0, 1, 2, 0xffff_ffff, 0xffff_fffe]),
    (116, 4, &[0, 2, 5, 0x102, 0x10201]),
    (120, 4, &[0, 256, 1024]),
    (124, 4, &[0, 2048, 0xffff_f800]),
    (128, 8, &[0, 8, 16, 80, 100, 2048, 1 << 40]),
    (136, 8, &[0, 9, 30720, 30728, 100_000, u64::MAX]),
    (152, 8, &[0, 1024, u64::MAX]),
    (160, 4, &[0, 1, 2, 3, 127, 128, 5000]),
    (184, 1, &[0, 1, 2, 3, 4]),
    (186, 2, &[0, 8, 100]),
    (188, 4, &[0, 8, 72, 0xffff_fff8, 0xffff_0000]),
    (192, 8, &[0, 1_700_000_000, 0xabcd_ef00_6000_0000]),
    (200, 8, &[0, 16, u64::MAX]),
    (208, 8, &[0, 1000, u64::MAX]),
    (220, 4, &[0, 1, 2, 4, 128, 1919]),
    (224, 4, &[0, 4096]),
    (256, 2, &[0, 1, 2, 3, 0xffff, 0xfffe, 0xfffd, 0xff00, 9]),
    (258, 2, &[0, 1, 2, 0xffff, 0xfffd, 40]),
    (260, 2, &[0, 1, 2, 0xfffe]),
];

const FIELDS_0_90: &[Field] = &[
    (8, 4, &[90, 91]),
    (24, 4, &[0, 1_700_000_000, u32::MAX as u64]),
    (28, 4, &[0, 1, 4, 5, 6, 10, 0xffff_ffff, 0xffff_fffc, 7]),
    (32, 4, &[0, 16320, 5_000_000, 0xffff_ffff]),
    (36, 4, &[0, 1, 3]),
    (40, 4, &[1, 2, 3, 5]),
    (44, 4, &[0, 127, 0xffff_ffff]),
    (48, 4, &[0, 1]),
    // The second is made from the name klab.
    (56, 8, &[0x1234, 0xf381_320a_9eaa_d9bb]),
    (128, 4, &[0, 1_700_000_000]),
    (132, 4, &[0, 1, 2, 3]),
    (148, 4, &[0, 1, 2]),
    (156, 4, &[0, 0xffff_ffff]),
    (160, 4, &[0, 7]),
    (176, 8, &[0, 20_000, u64::MAX]),
    (184, 4, &[0, 5, 6, 33]),
    (188, 4, &[0, 1, 0xffff_ffff]),
    (192, 4, &[0, 2, 5, 0x102, 0x10201]),
    (196, 4, &[0, 65536, 131_072]),
    (256, 4, &[0x102, 0x201, 0x10201]),
    (260, 4, &[0, 1000, 65536]),
    (512, 4, &[0, 1, 100_000]),
    (528, 4, &[0, 1, 6, 8, 9, 0x206, 0x406, 0x200]),
    (656, 4, &[0, 1, 6, 8, 0x600]),
    (3984, 4, &[0, 1, 6, 0x206]),
];

/// mdadm's output without the line that names the file.
fn mdadm(arguments: &[&str], path: &Path) -> Option<String> {
    let mut command = Command::new("/usr/sbin/mdadm");
    let output = command.env("TZ", "UTC").args(arguments).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "mdadm {arguments:?}: {output:?}");
    Some(text)
}

fn is_mdadm_4_2() -> bool {
    let output = Command::new("/usr/sbin/mdadm").arg("--version").output();
    // It says so on standard error.
    output.is_ok_and(|output| [output.stdout, output.stderr].concat().starts_with(b"mdadm - v4.2"))
}

/// Overwrites some fields; never so that mdadm divides by zero.
fn overwrite(superblock: &mut [u8], fields: &[Field], numbers: &mut Random) {
    for _ in 0..=numbers.below(6) {
        let (offset, width, values) = fields[numbers.below(fields.len())];
        let value = values[numbers.below(values.len())];
        superblock[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    let (level, layout) = if superblock[4] == 0 { (28, 256) } else { (72, 76) };
    if superblock[level] == 10 && (superblock[layout] == 0 || superblock[layout + 1] == 0) {
        superblock[layout..layout + 2].copy_from_slice(&[2, 1]);
    }
}

fn compare(array: &str, rounds: usize) {
    if !is_mdadm_4_2() {
        eprintln!("skipped: there is no mdadm 4.2 at /usr/sbin/mdadm to compare with");
        return;
    }
    let array = braid_golden::named(array);
    let member = &array.members[0];
    let version: Version = array.metadata.parse().expect("a version");
    let at = member.super_offset_bytes.expect("a superblock");
    let image = array.expand_member(0);
    let pristine = &image[at as usize..][..4096];
    let bitmap = member.bitmap_offset_bytes.map(|offset| &image[offset as usize..]);
    let fields = if version == Version::V0_90 { FIELDS_0_90 } else { FIELDS_1 };

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m0.img");
    fs::write(&path, &image).expect("an image");
    let file = fs::File::options().write(true).open(&path).expect("the image");
    let mut numbers = Random::new(1);
    for round in 0..rounds {
        let mut superblock = pristine.to_vec();
        overwrite(&mut superblock, fields, &mut numbers);
        if bitmap.is_some() {
            superblock[8] |= 1;
            superblock[96..100].copy_from_slice(&pristine[96..100]);
        }
        file.write_all_at(&superblock, at).expect("written");
        let around =
            Surroundings { bitmap, host: Some("klab"), ..Surroundings::unknown(member.bytes) };
        let written = Written::new(version, &superblock);
        let text = mdadm(&["--examine", "--homehost=klab"], &path).expect("mdadm's text");
        let (_, text) = text.split_once('\n').expect("several lines");
        let ours = examine::text(&written, &around);
        if !ours.contains("DEVICE TOO SMALL") {
            // Which mdadm says since 4.3.
            assert_eq!(ours, text, "{} round {round}", array.name);
        }
        for verbose in [false, true] {
            let arguments = ["--examine", "--brief", "--verbose"];
            let text = mdadm(&arguments[..2 + usize::from(verbose)], &path).expect("a line");
            let spares = if examine::counts_as_spare(&written) { "   spares=1" } else { "" };
            let devices = match verbose {
                true => format!("   devices={}", path.display()),
                false => String::new(),
            };
            let end = if spares.is_empty() && !verbose { "" } else { "\n" };
            let ours = examine::brief(&written, verbose);
            assert_eq!(format!("{ours}{spares}{devices}{end}"), text, "{} {round}", array.name);
        }
        let level = superblock[if version == Version::V0_90 { 28 } else { 72 }];
        if level != 7 {
            // mdadm prints no level that it does not know.
            let text = mdadm(&["--examine", "--export"], &path).expect("mdadm's lines");
            assert_eq!(examine::export(&written), text, "{} round {round}", array.name);
        }
    }
}

#[test]
fn overwritten_1_2_is_shown_as_by_mdadm() {
    compare("raid5-3", 150);
}

#[test]
fn overwritten_1_0_is_shown_as_by_mdadm() {
    compare("raid1-2-v1.0", 100);
}

#[test]
fn overwritten_1_1_is_shown_as_by_mdadm() {
    compare("raid1-2-v1.1", 60);
}

#[test]
fn overwritten_with_bitmap_is_shown_as_by_mdadm() {
    compare("raid1-2-bitmap", 60);
}

#[test]
fn overwritten_0_90_is_shown_as_by_mdadm() {
    compare("raid5-3-v0.90", 200);
}

const FIELDS_BITMAP: &[Field] = &[
    (4, 4, &[3, 4, 5]),
    (24, 8, &[0, 17, u64::MAX]),
    (32, 8, &[0, 17, u64::MAX]),
    (40, 8, &[0, 1, 2047, 30_720, 30_721, 8_000_000_000]),
    (48, 4, &[0, 1, 2, 4]),
    (52, 4, &[0, 512, 1023, 65_536, 3 << 20, 1 << 30]),
    (56, 4, &[0, 5, 0xffff_ffff]),
    (60, 4, &[0, 256, 0xffff_ffff]),
];

#[test]
fn overwritten_bitmaps_are_shown_as_by_mdadm() {
    if !is_mdadm_4_2() {
        eprintln!("skipped: there is no mdadm 4.2 at /usr/sbin/mdadm to compare with");
        return;
    }
    let array = braid_golden::named("raid1-2-bitmap");
    let at = array.members[0].bitmap_offset_bytes.expect("a bitmap") as usize;
    let pristine = &array.expand_member(0)[at..][..4096];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bitmap");
    let name = path.to_str().expect("a name");
    let mut numbers = Random::new(2);
    for round in 0..150 {
        let mut bitmap = pristine.to_vec();
        for _ in 0..=numbers.below(4) {
            let (offset, width, values) = FIELDS_BITMAP[numbers.below(FIELDS_BITMAP.len())];
            let value = values[numbers.below(values.len())];
            bitmap[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
            bitmap[256 + numbers.below(64)] ^= 1 << numbers.below(8);
        }
        // A file may end before the bits do.
        bitmap.truncate(4096 - numbers.below(2) * 3830);
        fs::write(&path, &bitmap).expect("written");
        let text = mdadm(&["--examine-bitmap"], &path).expect("mdadm's text");
        let ours = examine::bitmap_text(name, Version::V1_2, &bitmap).expect("a bitmap");
        assert_eq!(ours, text, "round {round}");
    }
}

//! Images that the real tools make: what braid says must be what `blkid` says.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use braid_probe::signature::FileImage;
use braid_probe::{Signature, scan_signatures};
use support::{Loop, image, run, skip, text};

const MIB: u64 = 1 << 20;

fn scan(path: &Path) -> Vec<Signature> {
    let file = File::open(path).expect("the image is there");
    let size = file.metadata().expect("the image has a size").len();
    scan_signatures(&FileImage { file: &file, start: 0, size }).expect("the image can be read")
}

/// `KEY=value` lines of `blkid -p -o export`; it fails when it finds nothing.
fn blkid(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let output = run("blkid", &["-p", "-o", "export", text(path)])?;
    let pairs = output.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(key, value)| (key.to_owned(), value.replace('\\', ""))).collect())
}

/// Identifiers without the punctuation that differs between tools.
fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// One format: the tool, its arguments (`IMAGE` is the image), the name here and blkid's type.
struct Case {
    tool: &'static str,
    arguments: &'static [&'static str],
    size: u64,
    name: &'static str,
    blkid_type: &'static str,
    label: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case {
        tool: "mkfs.ext2",
        arguments: &["-q", "-L", "two words", "IMAGE"],
        size: 16 * MIB,
        name: "ext2",
        blkid_type: "ext2",
        label: Some("two words"),
    },
    Case {
        tool: "mkfs.ext3",
        arguments: &["-q", "IMAGE"],
        size: 16 * MIB,
        name: "ext3",
        blkid_type: "ext3",
        label: None,
    },
    Case {
        tool: "mkfs.ext4",
        arguments: &["-q", "-b", "4096", "-L", "photos", "IMAGE"],
        size: 32 * MIB,
        name: "ext4",
        blkid_type: "ext4",
        label: Some("photos"),
    },
    Case {
        tool: "mkfs.xfs",
        arguments: &["-q", "-L", "logs", "IMAGE"],
        size: 320 * MIB,
        name: "xfs",
        blkid_type: "xfs",
        label: Some("logs"),
    },
    Case {
        tool: "mkfs.btrfs",
        arguments: &["-q", "-L", "backup", "IMAGE"],
        size: 128 * MIB,
        name: "btrfs",
        blkid_type: "btrfs",
        label: Some("backup"),
    },
    Case {
        tool: "mkswap",
        arguments: &["-L", "page", "IMAGE"],
        size: 16 * MIB,
        name: "swap",
        blkid_type: "swap",
        label: Some("page"),
    },
    Case {
        tool: "mkfs.f2fs",
        arguments: &["-q", "-l", "flash", "IMAGE"],
        size: 128 * MIB,
        name: "f2fs",
        blkid_type: "f2fs",
        label: Some("flash"),
    },
    Case {
        tool: "mkfs.vfat",
        arguments: &["-F", "16", "-n", "STICK", "IMAGE"],
        size: 16 * MIB,
        name: "vfat",
        blkid_type: "vfat",
        label: Some("STICK"),
    },
    Case {
        tool: "mkfs.vfat",
        arguments: &["-F", "32", "-n", "STICK", "IMAGE"],
        size: 64 * MIB,
        name: "vfat",
        blkid_type: "vfat",
        label: Some("STICK"),
    },
    Case {
        tool: "mkfs.exfat",
        arguments: &["IMAGE"],
        size: 16 * MIB,
        name: "exfat",
        blkid_type: "exfat",
        label: None,
    },
    Case {
        tool: "mkfs.ntfs",
        arguments: &["-q", "-F", "IMAGE"],
        size: 16 * MIB,
        name: "ntfs",
        blkid_type: "ntfs",
        label: None,
    },
    Case {
        tool: "cryptsetup",
        arguments: &["luksFormat", "-q", "--type", "luks1", "-i", "10", "IMAGE", "/proc/version"],
        size: 16 * MIB,
        name: "LUKS1",
        blkid_type: "crypto_LUKS",
        label: None,
    },
    Case {
        tool: "cryptsetup",
        arguments: &[
            "luksFormat",
            "-q",
            "--type",
            "luks2",
            "--label",
            "vault",
            "--pbkdf",
            "pbkdf2",
            "-i",
            "10",
            "IMAGE",
            "/proc/version",
        ],
        size: 32 * MIB,
        name: "LUKS2",
        blkid_type: "crypto_LUKS",
        label: Some("vault"),
    },
    Case {
        tool: "mksquashfs",
        arguments: &["/proc/self/cmdline", "IMAGE", "-noappend", "-quiet", "-no-progress"],
        size: 0,
        name: "squashfs",
        blkid_type: "squashfs",
        label: None,
    },
    Case {
        tool: "qemu-img",
        arguments: &["create", "-q", "-f", "qcow2", "IMAGE", "64M"],
        size: 0,
        name: "qcow2",
        blkid_type: "",
        label: None,
    },
    Case {
        tool: "qemu-img",
        arguments: &["create", "-q", "-f", "vdi", "IMAGE", "64M"],
        size: 0,
        name: "vdi",
        blkid_type: "",
        label: None,
    },
    Case {
        tool: "qemu-img",
        arguments: &["create", "-q", "-f", "vmdk", "IMAGE", "64M"],
        size: 0,
        name: "vmdk",
        blkid_type: "",
        label: None,
    },
    Case {
        tool: "qemu-img",
        arguments: &["create", "-q", "-f", "vpc", "IMAGE", "64M"],
        size: 0,
        name: "vhd",
        blkid_type: "",
        label: None,
    },
    Case {
        tool: "qemu-img",
        arguments: &["create", "-q", "-f", "vhdx", "IMAGE", "64M"],
        size: 0,
        name: "vhdx",
        blkid_type: "",
        label: None,
    },
];

#[test]
fn real_tools_and_blkid_agree() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (index, case) in CASES.iter().enumerate() {
        let path = image(directory.path(), &format!("{index}.img"), case.size);
        let arguments: Vec<&str> = case
            .arguments
            .iter()
            .map(|argument| if *argument == "IMAGE" { text(&path) } else { argument })
            .collect();
        if let Err(error) = run(case.tool, &arguments) {
            skip(case.name, &error);
            continue;
        }
        check_case(case, &path);
        std::fs::remove_file(&path).expect("the image can be removed");
    }
}

fn check_case(case: &Case, path: &Path) {
    let found = scan(path);
    assert_eq!(found.len(), 1, "{}: {found:?}", case.name);
    let signature = &found[0];
    assert_eq!(signature.name, case.name);
    assert_eq!(signature.label.as_deref(), case.label, "{}", case.name);
    if case.size > 0 {
        let size = signature.size.unwrap_or(case.size);
        assert!(size <= case.size && size >= case.size - 2 * MIB, "{}: {size}", case.name);
    }
    // blkid does not know the formats of virtual disks.
    if case.blkid_type.is_empty() {
        return;
    }
    match blkid(path) {
        Err(error) => skip("comparing with blkid", &error),
        Ok(theirs) => {
            assert_eq!(theirs.get("TYPE").map(String::as_str), Some(case.blkid_type));
            assert_eq!(theirs.get("LABEL").map(String::as_str), signature.label.as_deref());
            assert_eq!(
                theirs.get("UUID").map(|uuid| digits(uuid)),
                signature.uuid.as_deref().map(digits),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn a_physical_volume_of_lvm() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = image(directory.path(), "pv.img", 16 * MIB);
    // pvcreate takes block devices only; it must look at no other one than this.
    let made = Loop::attach(&file).and_then(|device| {
        let name = text(&device.device).to_owned();
        let config =
            format!(r#"devices {{ use_devicesfile=0 global_filter=["a|^{name}$|","r|.*|"] }}"#);
        run("pvcreate", &["-q", "--nolocking", "--config", &config, &name]).map(|_| device)
    });
    let device = match made {
        Ok(device) => device,
        Err(error) => return skip("LVM2", &error),
    };
    let found = scan(&file);
    assert_eq!(found.iter().map(|signature| signature.name).collect::<Vec<_>>(), ["LVM2 member"]);
    match blkid(&device.device) {
        Err(error) => skip("comparing LVM2 with blkid", &error),
        Ok(theirs) => assert_eq!(theirs.get("UUID"), found[0].uuid.as_ref()),
    }
}

#[test]
fn a_virtual_disk_knows_its_size() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for format in ["qcow2", "vdi", "vmdk"] {
        let path = directory.path().join(format);
        if let Err(error) = run("qemu-img", &["create", "-q", "-f", format, text(&path), "64M"]) {
            skip(format, &error);
            continue;
        }
        assert_eq!(scan(&path)[0].size, Some(64 * MIB), "{format}");
    }
}

#[test]
fn md_of_the_kernel_and_blkid_agree() {
    // blkid wants the whole superblock for its checksum, so only 0.90 (which has none here) is left.
    let block = include_bytes!("golden/md-0.90.sb");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = image(directory.path(), "md.img", 16 * MIB);
    let mut file = File::options().write(true).open(&path).expect("the image is there");
    file.seek(SeekFrom::Start(16 * MIB - 65536)).expect("the image is that long");
    file.write_all(block).expect("the image can be written");
    let found = scan(&path);
    match blkid(&path) {
        Err(error) => skip("comparing md 0.90 with blkid", &error),
        Ok(theirs) => {
            assert_eq!(theirs.get("TYPE").map(String::as_str), Some("linux_raid_member"));
            assert_eq!(
                theirs.get("UUID").map(|uuid| digits(uuid)),
                found[0].uuid.as_deref().map(digits)
            );
        }
    }
}

#[test]
fn partition_tables_of_sfdisk_and_blkid_agree() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (label, name, blkid_type) in [("dos", "MBR", "dos"), ("gpt", "GPT", "gpt")] {
        let path = image(directory.path(), label, 16 * MIB);
        let script = format!("printf 'label: {label}\\n,4M\\n,\\n' | sfdisk -q '{}'", text(&path));
        if let Err(error) = run("sh", &["-c", &script]) {
            skip(&format!("sfdisk with {label}"), &error);
            continue;
        }
        let found = scan(&path);
        assert_eq!(found.iter().map(|signature| signature.name).collect::<Vec<_>>(), [name]);
        match blkid(&path) {
            Err(error) => skip("comparing with blkid", &error),
            Ok(theirs) => {
                assert_eq!(theirs.get("PTTYPE").map(String::as_str), Some(blkid_type));
                assert_eq!(
                    theirs.get("PTUUID").map(|uuid| digits(uuid)),
                    found[0].uuid.as_deref().map(digits)
                );
            }
        }
    }
}

//! Small images of real file systems, and what the kernel said of where their files lie
//! (`testdata/make.sh`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::slice;

use braid_files::sparse::Sparse;
use braid_files::{
    Event, Extent, FilesError, Kind, Limits, Owner, ReadAt, Report, Volume, made, owners,
};
use braid_seed::Rng;

fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn packed(name: &str) -> Vec<u8> {
    fs::read(folder("../../fuzz/corpus/files").join(name)).expect("the image is there")
}

/// The kernel's extents: offset, place, length, whether they are written, path.
fn expected(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(folder("testdata").join(name).with_extension("txt"));
    text.expect("the kernel's words are there").lines().map(str::to_owned).collect()
}

fn told(report: &Report) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for piece in &report.pieces {
        let Owner::File { inode, offset, unwritten } = piece.owner else { continue };
        let Range { start, end } = piece.range;
        let written = if unwritten { "unwritten" } else { "written" };
        for path in &report.files[&inode].paths {
            let path = String::from_utf8_lossy(path).replace('\n', "?");
            lines.insert(format!("{offset} {start} {} {written} {path}", end - start));
        }
    }
    lines
}

fn check(name: &str) -> Report {
    let image = Sparse::unpack(&packed(name));
    let report = owners(&image, slice::from_ref(&(0..image.size())), &Limits::default())
        .expect("it is known");
    let (expected, mut told) = (expected(name), told(&report));
    // The kernel says nothing of the blocks of symbolic links.
    told.retain(|line| !line.ends_with("/link"));
    if name == "xfs" {
        // Nor of directories, there.
        told.retain(|line| {
            !["/", "/many", "/one"].iter().any(|path| line.ends_with(&format!(" {path}")))
        });
    }
    assert_eq!(told, expected, "{name}");
    assert_eq!(report.notes, [""; 0], "{name}");
    // Each range alone has the same owner as among all.
    for piece in &report.pieces {
        let middle = piece.range.start + 1..piece.range.end;
        let alone = owners(&image, slice::from_ref(&middle), &Limits::default());
        let alone = alone.expect("it is known").pieces;
        let is_same = |one: &Owner| match (one, piece.owner) {
            (Owner::File { inode, offset, .. }, Owner::File { inode: of, offset: at, .. }) => {
                (*inode, *offset) == (of, at + 1)
            }
            (one, owner) => *one == owner,
        };
        assert!(alone.iter().any(|found| is_same(&found.owner)), "{name}: {piece:?}: {alone:?}");
    }
    report
}

#[test]
fn files_of_small_images_are_where_the_kernel_says() {
    for name in ["ext2", "ext4", "ext4-inline", "xfs"] {
        check(name);
    }
}

/// Each file's extents on a walk are those that the reverse map tells, also where they are asked for in steps.
#[test]
fn a_walk_tells_the_same_names_and_extents() {
    for name in ["ext2", "ext4", "ext4-inline", "xfs"] {
        let image = Sparse::unpack(&packed(name));
        let volume = Volume::open(&image).expect("it is known");
        assert_eq!(volume.unreplayed(), None, "{name}");
        let mut walk = volume.walk().expect("it is known");
        let (mut path, mut lines) = (Vec::new(), BTreeSet::new());
        let mut directories = BTreeSet::from([String::new()]);
        while let Some(event) = walk.next() {
            let (name, node) = match event {
                Event::Enter(name, _) => {
                    path.push(name);
                    let full = path.join(&b'/');
                    directories.insert(String::from_utf8_lossy(&full).trim_matches('/').to_owned());
                    continue;
                }
                Event::Leave => {
                    path.pop();
                    continue;
                }
                Event::Trouble { name: of, why, .. } => panic!("{name}: {of:?}: {why}"),
                Event::Entry(name, node) => (name, node),
            };
            if node.kind != Kind::File {
                continue;
            }
            let full = [path.join(&b'/'), b"/".to_vec(), name].concat();
            let full = String::from_utf8_lossy(&full).replace('\n', "?");
            let mut from = 0;
            loop {
                let (extents, read) = walk.extents(&node, from);
                read.expect("it is not damaged");
                let Some(first) = extents.into_iter().next() else { break };
                let Extent { offset, range, unwritten } = first;
                let shared = walk.claim(&Extent { offset, range: range.clone(), unwritten });
                assert!(shared.is_empty() || node.links > 1, "{full}: {shared:?}");
                let written = if unwritten { "unwritten" } else { "written" };
                lines.insert(format!("{offset} {} {written} {full}", range.start));
                from = offset + (range.end - range.start);
            }
        }
        // Blocks behind the end of a file are not its contents: the length may be shorter.
        let expected = expected(name).into_iter().map(|line| {
            let mut words: Vec<&str> = line.splitn(4, ' ').collect();
            words.remove(2);
            words.join(" ")
        });
        for line in expected {
            let path = line.split_once(" /").map_or("", |(_, path)| path);
            let is_directory = directories.contains(path);
            assert!(is_directory || lines.contains(&line), "{name}: {line}: {lines:?}");
        }
        assert!(lines.len() > 3, "{name}: {lines:?}");
    }
}

/// The image was taken while it was mounted: that a directory was removed is in its journal alone.
#[test]
fn a_journal_is_replayed_and_its_damage_is_told() {
    let names = |image: &Vec<u8>| {
        let volume = Volume::open(image).expect("it is known");
        let mut walk = volume.walk().expect("it is known");
        let mut names = Vec::new();
        while let Some(event) = walk.next() {
            if let Event::Enter(name, _) = event {
                names.push(String::from_utf8_lossy(&name).into_owned());
            }
        }
        (names, volume.unreplayed().map(str::to_owned))
    };
    let mut image = unpacked("ext4-dirty");
    assert_eq!(
        names(&image),
        (["", "lost+found", "one", "two", "three"].map(str::to_owned).to_vec(), None)
    );
    let superblock = |bytes: &[u8]| bytes.starts_with(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4]);
    let at = image.chunks(1024).position(superblock).expect("there is a journal") * 1024;
    // Features that no journal has.
    image[at + 0x28] = 0xff;
    let (names, unreplayed) = names(&image);
    assert_eq!(names.first().map(String::as_str), Some(""));
    let told = unreplayed.expect("it is told");
    assert!(told.starts_with("the journal was not replayed"), "{told}");
}

/// A record of the log says that an inode was changed: its name is in doubt, and no other one.
#[test]
fn inodes_in_the_log_of_xfs_are_in_doubt() {
    let in_doubt = |image: &Vec<u8>| {
        let volume = Volume::open(image).expect("it is known");
        let mut walk = volume.walk().expect("it is known");
        walk.set_doubtful(Vec::new());
        let mut names = Vec::new();
        while let Some(event) = walk.next() {
            let is_doubtful = walk.took_doubtful();
            match event {
                Event::Entry(_, node) => names.push((node.inode, is_doubtful)),
                _ => assert!(!is_doubtful, "{event:?}"),
            }
        }
        (names, volume.unreplayed().map(str::to_owned))
    };
    let mut image = unpacked("xfs");
    let (names, unreplayed) = in_doubt(&image);
    assert_eq!(unreplayed, None);
    let inode = names[1].0;
    let number = |at: usize, len: usize| {
        image[at..at + len].iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (log, bits) = (number(48, 8), number(124, 1));
    let log = ((log >> bits) * number(84, 4) + (log & ((1 << bits) - 1))) * number(4, 4);
    let mut record = vec![0; 1024];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    let lsn = (1_u64 << 62).to_be_bytes();
    for (at, field) in [(0, 0xfeed_babe_u32), (8, 2), (12, 512), (40, 1), (300, 1), (320, 32 << 10)]
    {
        put(at, &field.to_be_bytes());
    }
    put(16, &lsn);
    put(24, &lsn);
    // The first word of the operation stands in the header, and the cycle in its place.
    put(44, &7_u32.to_be_bytes());
    put(512, &(1_u32 << 30).to_be_bytes());
    put(516, &56_u32.to_be_bytes());
    put(520, &[0x69]);
    put(524, &0x123b_u16.to_le_bytes());
    put(524 + 16, &inode.to_le_bytes());
    image[log..log + 1024].copy_from_slice(&record);
    let (names, unreplayed) = in_doubt(&image);
    let told = unreplayed.expect("it is told");
    assert!(told.contains("1024 bytes") && told.contains("changes of 1 inodes"), "{told}");
    // A file may have several names.
    assert!(names.iter().all(|one| one.1 == (one.0 == inode)), "{names:?}");
}

#[test]
fn a_damaged_descriptor_hides_its_group_only() {
    let mut image = unpacked("ext4");
    let whole = report(&image, &Limits::default());
    // The inode table of the first group lies behind the end, by its descriptor and by the copy.
    let descriptors =
        whole.pieces.iter().filter(|piece| piece.owner == Owner::Metadata("group descriptors"));
    for at in descriptors.map(|piece| piece.range.start as usize) {
        image[at + 8..at + 12].fill(0xff);
    }
    let report = report(&image, &Limits::default());
    assert!(
        report.notes[0].starts_with("the descriptor of group 0 is not used"),
        "{:?}",
        report.notes
    );
    assert!(report.pieces.iter().any(|piece| piece.owner == Owner::Unknown));
}

/// As a superblock of md overwrites them in the second block.
#[test]
fn damaged_descriptors_are_read_from_their_copies() {
    let mut image = unpacked("ext4");
    let whole = report(&image, &Limits::default());
    let is_it = |owner: &Owner| *owner == Owner::Metadata("group descriptors");
    let places = whole.pieces.iter().filter(|piece| is_it(&piece.owner));
    let places: Vec<usize> = places.map(|piece| piece.range.start as usize).collect();
    let [first, copy] = places[..] else { panic!("one copy: {places:?}") };
    assert!(image[copy..copy + 512].iter().any(|byte| *byte != 0), "mke2fs made a copy");
    image[first..first + 512].fill(0xa9);
    let damaged = report(&image, &Limits::default());
    assert_eq!(told(&damaged), told(&whole));
    assert_eq!(damaged.notes, ["group descriptors are damaged: their copies are used"]);
}

#[test]
fn features_that_are_not_understood_are_named() {
    let mut image = unpacked("ext4");
    image[1024 + 0x60] |= 1;
    image[1024 + 0x63] |= 0x80;
    let refused = owners(&image, &[], &Limits::default());
    let Err(error @ FilesError::Features { .. }) = refused else {
        panic!("it is refused: {refused:?}")
    };
    let words = "the ext4 file system has features that are not understood: compression, incompat bits 0x80000000";
    assert_eq!(error.to_string(), words);
    let other = owners(&vec![0; 8192], &[], &Limits::default());
    assert!(matches!(other, Err(FilesError::NotKnown)));
}

/// The bytes of the lines 1 to `last`.
fn lines(last: u32) -> Vec<u8> {
    (1..=last).flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// The content of each file on a walk, or the reason why it is not read; a special file is one in words.
fn contents(volume: &Volume<'_>) -> BTreeMap<String, Result<Vec<u8>, String>> {
    let mut walk = volume.walk().expect("it is known");
    let mut found = BTreeMap::new();
    while let Some(event) = walk.next() {
        let Event::Entry(name, node) = event else {
            assert!(!matches!(event, Event::Trouble { .. }), "{event:?}");
            continue;
        };
        let path = String::from_utf8_lossy(&walk.path(&name)).into_owned();
        let content = match (node.kind, walk.inline(&node)) {
            (Kind::Special(what), _) => Err(what.to_owned()),
            (_, Err(why)) => Err(why.to_string()),
            (_, Ok(Some(bytes))) => Ok(bytes),
            (_, Ok(None)) => {
                let mut bytes = vec![0; node.size as usize];
                let (extents, read) = walk.extents(&node, 0);
                for Extent { offset, range, .. } in extents.iter().filter(|one| !one.unwritten) {
                    let to = *offset as usize..(offset + range.end - range.start) as usize;
                    volume.read_at(range.start, &mut bytes[to]).expect("it can be read");
                }
                read.map(|()| bytes).map_err(|why| why.to_string())
            }
        };
        found.insert(path, content);
    }
    found
}

/// The kernel wrote it, with copies of its metadata (`testdata/btrfs.sh`).
#[test]
fn files_of_btrfs_are_read_through_chunks_and_subvolumes() {
    let image = unpacked("btrfs");
    let volume = Volume::open(&image).expect("it is known");
    assert_eq!(volume.unreplayed(), None);
    let mut found = contents(&volume);
    let many = found.extract_if(.., |path, _| path.starts_with("/many/")).count();
    assert_eq!(many, 300);
    let mut sparse = vec![0; 256 << 10];
    sparse.extend(lines(500));
    sparse.resize(1 << 20, 0);
    let expected = [
        ("/a/b/reserved", Ok(vec![0; 128 << 10])),
        ("/a/hole", Ok(sparse)),
        ("/again", Ok(lines(8000))),
        ("/large", Ok(lines(8000))),
        ("/link", Ok(b"large".to_vec())),
        ("/packed/numbers", Err("compressed content is not read".to_owned())),
        ("/small", Ok(lines(10))),
        ("/volume/inside", Ok(lines(1500))),
        ("/volume/shared", Ok(lines(8000))),
        ("/volume/snapshot", Err("read-only snapshot".to_owned())),
    ];
    for (path, content) in expected {
        assert!(found.remove(path).as_ref() == Some(&content), "{path}");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), [""; 0]);

    let report = report(&image, &Limits::default());
    assert_eq!(report.notes, [""; 0]);
    assert!(!report.pieces.iter().any(|piece| piece.owner == Owner::Unknown), "{report:?}");
    let nodes = report.pieces.iter().filter(|one| one.owner == Owner::Metadata("node of a tree"));
    let nodes: Vec<Range<u64>> = nodes.map(|one| one.range.clone()).collect();
    // The first copy of each node is damaged, and the second one is right.
    let (mut damaged, mut known) = (image.clone(), BTreeSet::new());
    for at in nodes.into_iter().flat_map(|range| range.step_by(4096)) {
        let node = at as usize..at as usize + 4096;
        if known.insert(&image[node.clone()]) {
            damaged[node].fill(0x55);
        }
    }
    assert!(damaged != image);
    let volume = Volume::open(&damaged).expect("it is known");
    assert!(contents(&volume)["/large"] == Ok(lines(8000)), "the second copies are read");
    let owned = |name: &str| report.files.values().any(|one| one.paths.contains(&name.into()));
    assert!(owned("/volume/inside") && owned("/large") && owned("/a/hole"), "{:?}", report.files);
}

#[test]
fn an_answer_is_no_larger_than_its_limits() {
    let image = unpacked("ext4");
    let report = report(&image, &Limits { pieces: 5, name_bytes: 100 });
    assert_eq!(report.pieces.len(), 5);
    assert!(
        report.notes.iter().any(|note| note.contains("more than 5 pieces")),
        "{:?}",
        report.notes
    );
    assert!(report.files.values().map(|names| names.paths.len()).sum::<usize>() <= 2);
}

fn unpacked(name: &str) -> Vec<u8> {
    let image = Sparse::unpack(&packed(name));
    let mut bytes = vec![0; image.size() as usize];
    image.read_at(0, &mut bytes).expect("all of it is there");
    bytes
}

/// Bytes that look like a superblock and are the sum of several, as parity has them.
#[test]
fn a_superblock_that_is_not_believed_says_no_age() {
    const SUPERBLOCK: usize = 1024;
    let image = unpacked("ext4-inline");
    let age = made(&image).expect("it is read").expect("mke2fs noted it");
    // Its own words for the time of its making.
    let place = SUPERBLOCK + 0x108;
    let word = image[place..place + 4].try_into().expect("four bytes");
    assert_eq!(age, i64::from(u32::from_le_bytes(word)));
    for (what, place) in [("the checksum", SUPERBLOCK + 0x3fc), ("a byte of the age", place)] {
        let mut sum = image.clone();
        sum[place] ^= 1;
        let error = made(&sum).expect_err(what);
        assert!(matches!(error, FilesError::Superblock { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("checksum"), "{what}: {error}");
    }
}

fn report(image: &Vec<u8>, limits: &Limits) -> Report {
    owners(image, slice::from_ref(&(0..image.size())), limits).expect("it is known")
}

/// Numbers where numbers are, in the byte order of either file system; the shape of the image stays.
#[test]
fn numbers_that_lie_are_survived() {
    const EDGES: [u32; 10] = [0, 1, 2, 11, 0x7f, 0xff, 0xffff, 0x8000_0000, 0xffff_fff0, u32::MAX];
    const RECORD: usize = 4 + 512;
    let mut names: Vec<_> = fs::read_dir(folder("../../fuzz/corpus/files"))
        .expect("there are images")
        .map(|entry| entry.expect("an entry can be read").file_name().into_string())
        .collect::<Result<_, _>>()
        .expect("they have plain names");
    names.sort();
    for name in names {
        let mut packed = packed(&name);
        if name == "btrfs" {
            // A checksum that is not computed, so that changed nodes are believed.
            let place =
                |record: &usize| packed[4 + record * RECORD..].starts_with(&128_u32.to_le_bytes());
            let superblock = (0..packed.len() / RECORD).find(place).expect("a superblock");
            packed[4 + superblock * RECORD + 4 + 0xc4] = 1;
        }
        let records = packed.len() / RECORD;
        // The image of btrfs is ten times as large as the others.
        for seed in 0..if name == "btrfs" { 500 } else { 5000 } {
            let mut rng = Rng::new(seed);
            let mut below = |limit: usize| (rng.next_u64() % limit as u64) as usize;
            let mut changed = packed.clone();
            for _ in 0..=below(4) {
                // Half of them in the superblock, or beside it.
                let record = if below(2) == 0 { below(3) } else { below(records) };
                let width = [1, 2, 4][below(3)];
                let at = 4 + record * RECORD + 4 + below(512 / width) * width;
                let copied = 4 + below(records) * RECORD + 4 + below(128) * 4;
                let value = match below(3) {
                    0 => EDGES[below(EDGES.len())].to_le_bytes(),
                    1 => EDGES[below(EDGES.len())].to_be_bytes(),
                    _ => [0, 1, 2, 3].map(|byte| packed[copied + byte]),
                };
                changed[at..at + width].copy_from_slice(&value[..width]);
            }
            braid_files::fuzz::fuzz_files(&changed);
        }
    }
}

//! Clues of real file systems, made by their own tools: in an undamaged one, each block lies where it says.

#[path = "evidence/made.rs"]
mod made;

use std::fs;
use std::path::Path;

use braid_files::ReadAt;
use braid_files::sparse::Sparse;
use braid_rescue::Structure;
use braid_rescue::evidence::{Found, Known, Partition, anchors, clues, gather, learn, settle};
use braid_rescue::look::{Volume, look as volumes_of};
use braid_seed::Rng;
use made::{Filled, MIB, mkfs};

/// The bytes of a member that are looked at together.
const WINDOW: usize = 4 << 20;

/// The structures of members, and the clues of each member.
fn look(members: &[Vec<u8>]) -> (Vec<Known>, Vec<Vec<Found>>) {
    let windows = |member: usize| members[member].chunks(WINDOW).zip((0..).step_by(WINDOW));
    let all = || (0..members.len()).flat_map(windows);
    let mut known = Vec::new();
    for (window, at) in all() {
        gather(&mut known, anchors(window, at).into_iter().map(|(_, one)| one));
    }
    all().for_each(|(window, _)| learn(window, &mut known));
    let of = |member: usize| {
        let mut found =
            windows(member).flat_map(|(window, at)| clues(window, at, &known)).collect();
        settle(&mut found);
        // What may be a copy in a journal is often one.
        found.retain(|one: &Found| !one.is_doubtful);
        found
    };
    let found = (0..members.len()).map(of).collect();
    (known, found)
}

/// Checks that an image, which begins at `base` in a member, has one structure whose clues are all right. Returns how
/// many there are.
fn right(name: &str, member: Vec<u8>, structure: Structure, base: u64) -> usize {
    judge(name, &[member], structure, |_, at| at - base)
}

/// Checks the same of an image over three members without redundancy.
fn right_in_stripes(name: &str, image: &[u8], structure: Structure, chunk: usize) -> usize {
    let mut members = vec![Vec::new(); 3];
    for (index, chunk) in image.chunks(chunk).enumerate() {
        members[index % 3].extend_from_slice(chunk);
    }
    let chunk = chunk as u64;
    let place = |member: usize, at: u64| (at / chunk * 3 + member as u64) * chunk + at % chunk;
    judge(&format!("{name}, chunks of {chunk}"), &members, structure, place)
}

fn judge(
    name: &str,
    members: &[Vec<u8>],
    structure: Structure,
    place: impl Fn(usize, u64) -> u64,
) -> usize {
    let (known, found) = look(members);
    let kinds: Vec<_> = known.iter().map(Known::anchor).collect();
    assert!(kinds.len() == 1 && kinds[0].structure == structure, "{name}: {kinds:?}");
    for (member, clue) in
        (0..).zip(&found).flat_map(|(member, found)| found.iter().map(move |clue| (member, clue)))
    {
        let length = u64::from(clue.length);
        assert_eq!(clue.place, place(member, clue.at), "{name}: {clue:?} of member {member}");
        let last = place(member, clue.at + length - 1);
        assert_eq!(clue.place + length - 1, last, "{name}: {clue:?} of member {member}");
        assert!(length >= 512, "{name}: {clue:?}");
    }
    let count = found.iter().map(Vec::len).sum();
    println!("{name}: {count} clues");
    count
}

/// Checks that a member with the parity of three others has few clues. The sum of three blocks has a right checksum, and
/// if they are alike nothing else tells it from a block.
fn few_in_parity(name: &str, image: &[u8]) {
    let chunk = 16 << 10;
    let mut members = vec![Vec::new(); 4];
    for row in image.chunks_exact(3 * chunk) {
        let mut parity = vec![0; chunk];
        for (member, data) in row.chunks(chunk).enumerate() {
            members[member].extend_from_slice(data);
            parity.iter_mut().zip(data).for_each(|(sum, byte)| *sum ^= byte);
        }
        members[3].extend_from_slice(&parity);
    }
    let (_, found) = look(&members);
    let chunk = chunk as u64;
    // Where the other two are zeros, parity is a copy.
    let is_copy = |clue: &&Found| {
        (0..3).any(|member| clue.place == (clue.at / chunk * 3 + member) * chunk + clue.at % chunk)
    };
    let ghosts: Vec<_> = found[3].iter().filter(|clue| !is_copy(clue)).collect();
    let all: usize = found[..3].iter().map(Vec::len).sum();
    println!("{name}: {} clues of parity, and {all} of data", ghosts.len());
    assert!(4 * ghosts.len() <= all, "{name}: {ghosts:?}");
}

/// Checks a file system as it is, and over members in small and in large chunks.
fn right_in_all(words: &[&str], image: Vec<u8>, structure: Structure, least: usize) {
    let name = words.join(" ");
    few_in_parity(&name, &image);
    assert!(right_in_stripes(&name, &image, structure, 64 << 10) >= least, "{name}");
    // In the smallest chunks are no blocks of more than 4 KiB.
    right_in_stripes(&name, &image, structure, 4 << 10);
    assert!(right(&name, image, structure, 0) >= least, "{name}");
}

/// The bytes of a packed image of the fuzzers.
fn packed(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let image = Sparse::unpack(&fs::read(path).expect("the image is there"));
    let mut bytes = vec![0; image.size() as usize];
    image.read_at(0, &mut bytes).expect("all of it is there");
    bytes
}

#[test]
fn small_images_are_known() {
    for (name, structure, least) in [
        ("files/ext2", Structure::Ext, 1),
        ("files/ext4", Structure::Ext, 1),
        ("files/ext4-inline", Structure::Ext, 1),
        ("files/xfs", Structure::Xfs, 10),
        ("evidence/btrfs-single", Structure::Btrfs, 8),
        ("evidence/btrfs-dup", Structure::Btrfs, 12),
        ("evidence/ntfs", Structure::Ntfs, 10),
        ("evidence/gpt", Structure::Gpt, 2),
        ("evidence/gpt-4k", Structure::Gpt, 2),
        ("evidence/luks1", Structure::Luks, 1),
        ("evidence/luks2", Structure::Luks, 2),
        ("evidence/lvm2", Structure::Lvm2, 2),
    ] {
        let image = packed(name);
        // A member may have its data at any sector.
        let moved = [&[0; 63 * 512], image.as_slice()].concat();
        assert!(right(name, moved, structure, 63 * 512) >= least, "{name}, moved");
        assert!(right(name, image, structure, 0) >= least, "{name}");
    }
}

#[test]
fn partitions_and_logical_volumes_are_read() {
    for (name, sector) in [("evidence/gpt", 512), ("evidence/gpt-4k", 4096)] {
        let (known, _) = look(&[packed(name)]);
        let [Known::Gpt(gpt)] = known.as_slice() else { panic!("{name}: {known:?}") };
        let of = |partition: &Partition| (partition.number, partition.start, partition.length);
        let found: Vec<_> = gpt.partitions().iter().map(of).collect();
        assert_eq!(found, [(1, MIB, 20 * MIB), (2, 21 * MIB, 10 * MIB)], "{name}: {sector}");
    }
    let (known, _) = look(&[packed("evidence/lvm2")]);
    let [Known::Lvm2(lvm2)] = known.as_slice() else { panic!("{known:?}") };
    let group = lvm2.group().expect("the text is in the image");
    assert_eq!((group.name.as_str(), group.extent, group.physical.len()), ("case", 4 * MIB, 2));
    assert_eq!(lvm2.physical().map(|one| (one.size, one.start)), Some((96 * MIB, MIB)));
    let segments = |name: &str| {
        let of = group.logical.iter().find(|one| one.name == name).expect("it is there");
        of.segments.iter().map(|one| (one.start, one.length, one.linear())).collect::<Vec<_>>()
    };
    assert_eq!(segments("root"), [(0, 40 * MIB, Some(("pv0", MIB)))]);
    let (first, second) =
        ((0, 60 * MIB, Some(("pv1", MIB))), (60 * MIB, 20 * MIB, Some(("pv0", 41 * MIB))));
    assert_eq!(segments("home"), [first, second]);
}

/// An image as an array.
struct Image(Vec<u8>);

impl braid_probe::ReadAt for Image {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.0.get(usize::try_from(offset).expect("small")..).unwrap_or_default();
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        Ok(count)
    }
}

#[test]
fn volumes_are_found_in_what_the_tools_made() {
    let volumes = |name: &str| {
        let image = Image(packed(name));
        let found = volumes_of(&[("md0".to_owned(), &image)]);
        let place = |one: &Volume| one.place.expression(&["A".to_owned()]);
        let places = found.volumes.iter().map(|one| (one.name.clone(), place(one)));
        (places.collect::<Vec<_>>(), found.unread)
    };
    let part = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let (found, unread) = volumes("evidence/gpt");
    let parts = [
        part("md0/p1", "slice(A, offset=1M, length=20M)"),
        part("md0/p2", "slice(A, offset=21M, length=10M)"),
    ];
    assert_eq!((&found[1..], unread.len()), (&parts[..], 0));
    // One of the two physical volumes.
    let (found, unread) = volumes("evidence/lvm2");
    assert_eq!(found[1..], [part("case/root", "slice(A, offset=1M, length=40M)")]);
    assert!(
        unread[0].0 == "case/home" && unread[0].1.contains("physical volume pv1"),
        "{unread:?}"
    );
}

#[test]
fn blocks_of_btrfs_say_where_they_belong() {
    for (options, least) in [(&["-m", "single"][..], 10), (&["-m", "dup"], 10), (&["-M"], 10)] {
        let words = [&["mkfs.btrfs", "-q"], options].concat();
        let Some(image) = mkfs(160 * MIB, &words, Filled::Mounted) else { return };
        right_in_all(&words, image, Structure::Btrfs, least);
    }
}

#[test]
fn blocks_of_ext4_say_where_they_belong() {
    let mkfs_ext4 = ["mkfs.ext4", "-q", "-F", "-E", "nodiscard"];
    use Filled::{Mounted, Not};
    for (options, filled, least) in [
        (&[][..], Mounted, 100),
        (&["-b", "1024"], Mounted, 100),
        (&["-b", "1024", "-g", "2048", "-O", "^flex_bg"], Mounted, 100),
        (&["-O", "meta_bg,^resize_inode"], Mounted, 100),
        (&["-O", "^64bit", "-I", "512"], Mounted, 100),
        (&["-O", "metadata_csum_seed", "-U", "random"], Mounted, 100),
        (&["-O", "^metadata_csum", "-b", "1024"], Mounted, 20),
        (&["-t", "ext3", "-b", "1024"], Mounted, 20),
        // Times of creation are later than others there.
        (&["-d", "../../docs"], Not, 5),
    ] {
        let words = [&mkfs_ext4[..], options].concat();
        let Some(image) = mkfs(128 * MIB, &words, filled) else { return };
        right_in_all(&words, image, Structure::Ext, least);
    }
}

#[test]
fn blocks_of_xfs_say_where_they_belong() {
    use Filled::{Mounted, Not};
    for (options, filled, least) in [
        (&[][..], Mounted, 100),
        (&["-m", "reflink=0,rmapbt=0", "-n", "size=16384", "-i", "size=1024"], Mounted, 100),
        (&["-b", "size=1024", "-d", "agcount=4", "-n", "size=4096"], Mounted, 100),
        (&["-m", "crc=0", "-d", "agcount=4"], Not, 4),
    ] {
        let words = [&["mkfs.xfs", "-q", "-f"], options].concat();
        let Some(image) = mkfs(320 * MIB, &words, filled) else { return };
        right_in_all(&words, image, Structure::Xfs, least);
    }
}

#[test]
fn bytes_of_no_structure_have_no_clues() {
    let mut rng = Rng::new(1);
    let mut noise = vec![0_u8; 8 << 20];
    noise.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
    for (name, bytes) in
        [("noise", noise), ("zeros", vec![0; 1 << 20]), ("ones", vec![255; 1 << 20])]
    {
        assert!(look(std::slice::from_ref(&bytes)).0.is_empty(), "{name}");
        // Nor does a structure that is known by other windows make clues of them.
        for of in
            ["files/ext4", "files/xfs", "evidence/btrfs-single", "evidence/ntfs", "evidence/lvm2"]
        {
            let (mut known, _) = look(&[packed(of)]);
            learn(&bytes, &mut known);
            assert_eq!(clues(&bytes, 0, &known), [], "{name} beside {of}");
        }
    }
}

/// Most blocks that say where they belong lie where the facts of their structure point.
#[test]
fn blocks_lie_where_landmarks_say() {
    for name in ["files/ext4-inline", "files/xfs", "evidence/btrfs-single"] {
        let image = packed(name);
        let size = image.len() as u64;
        let (known, found) = look(&[image]);
        let landmarks = known[0].landmarks();
        let bytes: u64 = landmarks.iter().map(|range| range.end.min(size) - range.start).sum();
        let is_there = |one: &&Found| landmarks.iter().any(|range| range.contains(&one.place));
        let within = found[0].iter().filter(is_there).count();
        let all = found[0].len();
        println!("{name}: {within} of {all} clues in {bytes} of {size} bytes");
        assert!(within * 2 > all, "{name}: {within} of {all}");
        assert!(bytes < size, "{name}: {bytes} of {size}");
    }
}

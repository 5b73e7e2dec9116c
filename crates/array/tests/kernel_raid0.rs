//! Golden arrays: the chunks of raid0 over unequal members lie where the kernel's md put them, in
//! both layouts.

use braid_array::geometry::Raid0;
use braid_array::{ArrayByte, Geometry, MemberByte};
use braid_level::Raid0Layout;

/// A kernel's array: the chunk size, and for each member its size and the chunks on it.
struct Golden {
    chunk: u64,
    members: Vec<(u64, Vec<u64>)>,
}

fn parse(text: &str) -> Golden {
    let mut golden = Golden { chunk: 0, members: Vec::new() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap();
        let mut numbers = rest.split(' ').map(|number| number.parse::<u64>().unwrap());
        let first = numbers.next().unwrap();
        match kind {
            "chunk" => golden.chunk = first,
            "member" => golden.members.push((first, numbers.collect())),
            _ => panic!("{line}"),
        }
    }
    golden
}

fn check(text: &str, layout: Raid0Layout) {
    let golden = parse(text);
    let sizes: Vec<u64> = golden.members.iter().map(|(size, _)| *size).collect();
    let raid0 = Raid0::new(&sizes, golden.chunk, layout, 512).unwrap();
    let chunks: usize = golden.members.iter().map(|(_, chunks)| chunks.len()).sum();
    assert_eq!(raid0.size(), chunks as u64 * golden.chunk);
    for (member, (_, chunks)) in golden.members.iter().enumerate() {
        for (row, chunk) in chunks.iter().enumerate() {
            let run = raid0.locate(ArrayByte::new(chunk * golden.chunk));
            assert_eq!(
                (run.role.index(), run.offset),
                (member, MemberByte::new(row as u64 * golden.chunk)),
                "chunk {chunk} of the array"
            );
        }
    }
}

#[test]
fn the_alternate_layout_is_the_kernel_s() {
    check(include_str!("../../../testdata/md/raid0-zones-alternate.txt"), Raid0Layout::Alternate);
}

#[test]
fn the_original_layout_is_the_kernel_s() {
    check(include_str!("../../../testdata/md/raid0-zones-original.txt"), Raid0Layout::Original);
}

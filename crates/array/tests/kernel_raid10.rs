//! Golden arrays: the copies of raid10's chunks lie where the kernel's md put them.

use braid_array::geometry::Raid10;
use braid_array::{MemberByte, Mirrored, Role};
use braid_level::Raid10Layout;

/// A kernel's array: the layout number, chunk size and array size, and for each member its size and the array's
/// chunk at each of its chunks, `None` if it has none.
#[derive(Default)]
struct Golden {
    layout: u32,
    chunk: u64,
    size: u64,
    members: Vec<(u64, Vec<Option<u64>>)>,
}

fn parse(text: &str) -> Golden {
    let mut golden = Golden::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap();
        let mut numbers = rest.split(' ');
        let first: u64 = numbers.next().unwrap().parse().unwrap();
        match kind {
            "layout" => golden.layout = first.try_into().unwrap(),
            "chunk" => golden.chunk = first,
            "size" => golden.size = first,
            "member" => golden.members.push((first, numbers.map(|one| one.parse().ok()).collect())),
            _ => panic!("{line}"),
        }
    }
    golden
}

fn check(text: &str) {
    let golden = parse(text);
    let layout = Raid10Layout::from_number(golden.layout).unwrap();
    let member_size = golden.members[0].0;
    let raid10 = Raid10::new(member_size, golden.members.len(), golden.chunk, layout).unwrap();
    assert_eq!(raid10.size(), golden.size);
    let mut copies = 0;
    for (member, (size, chunks)) in golden.members.iter().enumerate() {
        assert_eq!(*size, member_size);
        for (row, &chunk) in chunks.iter().enumerate() {
            let (role, place) = (Role::nth(member), MemberByte::new(row as u64 * golden.chunk));
            let owner = raid10.owner(role, place);
            assert_eq!(
                owner.map(|owner| owner.offset / golden.chunk),
                chunk,
                "row {row} of member {member}"
            );
            let Some(owner) = owner else { continue };
            let run = raid10.locate(owner.offset, owner.copy);
            assert_eq!((run.role, run.offset), (role, place));
            copies += 1;
        }
    }
    assert_eq!(copies, golden.size / golden.chunk * raid10.copies() as u64);
}

macro_rules! golden {
    ($($test:ident: $file:literal,)*) => {$(
        #[test]
        fn $test() {
            check(include_str!(concat!("../../../testdata/md/", $file, ".txt")));
        }
    )*};
}

golden! {
    n2_over_3_is_the_kernel_s: "raid10-3-n2",
    f2_over_3_is_the_kernel_s: "raid10-3-f2",
    o2_over_3_is_the_kernel_s: "raid10-3-o2",
    n2_over_4_is_the_kernel_s: "raid10-4-n2",
    f2_over_4_is_the_kernel_s: "raid10-4-f2",
    o2_over_4_is_the_kernel_s: "raid10-4-o2",
    n3_over_5_is_the_kernel_s: "raid10-5-n3",
    f3_with_a_chunk_too_many_is_the_kernel_s: "raid10-5-f3",
    o3_with_a_row_too_many_is_the_kernel_s: "raid10-5-o3",
    n2_with_an_odd_last_chunk_is_the_kernel_s: "raid10-5-n2-odd",
    near_and_far_copies_are_the_kernel_s: "raid10-5-n2f2",
    near_and_offset_copies_are_the_kernel_s: "raid10-4-n2o2",
    far_sets_that_divide_the_members_are_the_kernel_s: "raid10-6-f2-sets",
    far_sets_with_a_larger_last_one_are_the_kernel_s: "raid10-5-f2-sets",
    far_sets_of_near_and_far_copies_are_the_kernel_s: "raid10-8-n2f2-sets",
    far_sets_of_the_first_attempt_are_the_kernel_s: "raid10-5-f2-divided",
    far_sets_with_offset_are_the_kernel_s: "raid10-5-o2-sets",
}

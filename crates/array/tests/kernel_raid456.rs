//! Golden arrays: the data and the parity of raid4, raid5 and raid6 lie where the kernel's md put
//! them, and P and Q are what it made of the data.

use braid_array::geometry::{Column, Raid456};
use braid_array::{Geometry, Run};
use braid_golden::{Golden, Role, named};
use braid_level::{ParityLayout, ParityLevel};

/// The data of the members that are there, by role.
fn members(golden: &Golden) -> Vec<Option<Vec<u8>>> {
    let mut members = vec![None; golden.raid_disks as usize];
    for member in golden.present() {
        let Role::Slot(role) = member.role else { continue };
        let start = member.data_offset_bytes.unwrap() as usize;
        let end = start + member.data_bytes.unwrap() as usize;
        members[role as usize] = Some(golden.expand_member(member.index)[start..end].to_vec());
    }
    members
}

fn geometry(golden: &Golden) -> Raid456 {
    let level = match golden.level.as_str() {
        "raid4" => ParityLevel::Raid4,
        "raid5" => ParityLevel::Raid5,
        "raid6" => ParityLevel::Raid6,
        level => panic!("{level}"),
    };
    let number = golden.layout_number.try_into().unwrap();
    let layout = ParityLayout::from_number(level, number).unwrap();
    if let Some(name) = &golden.layout {
        assert_eq!(layout.to_string(), *name);
    }
    let member_size = golden.present().map(|member| member.data_bytes.unwrap()).min().unwrap();
    let members = golden.raid_disks as usize;
    Raid456::new(member_size, members, golden.chunk_bytes, level, layout).unwrap()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

/// Each byte of `sum` times g, modulo x^8 + x^4 + x^3 + x^2 + 1.
fn double(sum: &mut [u64]) {
    for word in sum {
        let high = *word & 0x8080_8080_8080_8080;
        *word = ((*word ^ high) << 1) ^ ((high >> 7) * 0x1d);
    }
}

fn add(sum: &mut [u64], data: &[u8]) {
    for (word, data) in sum.iter_mut().zip(words(data)) {
        *word ^= data;
    }
}

/// The exclusive or of a stripe's data.
fn p_of(raid: &Raid456, data: &[u8]) -> Vec<u64> {
    let mut sum = vec![0; raid.chunk() as usize / 8];
    data.chunks_exact(raid.chunk() as usize).for_each(|chunk| add(&mut sum, chunk));
    sum
}

/// The sum of g^power · data, by Horner's rule.
fn q_of(raid: &Raid456, stripe: u64, data: &[u8]) -> Vec<u64> {
    let chunk = raid.chunk() as usize;
    let mut sum = vec![0; chunk / 8];
    for power in (0..raid.powers()).rev() {
        double(&mut sum);
        let index = (0..raid.data()).find(|&data| usize::from(raid.power(stripe, data)) == power);
        if let Some(index) = index {
            add(&mut sum, &data[index * chunk..][..chunk]);
        }
    }
    sum
}

/// Data that cannot be compared because their member is missing are covered by the parity.
fn check(name: &str) {
    let golden = named(name);
    let (raid, members) = (geometry(&golden), members(&golden));
    assert_eq!(raid.size(), golden.array_bytes);
    let chunk = raid.chunk() as usize;
    let (mut data_seen, mut parity_seen) = (0, 0);
    for stripe in 0..raid.stripes() {
        let start = stripe * raid.stripe();
        let content = golden.content_block(start, raid.stripe() as usize);
        for (index, expected) in content.chunks_exact(chunk).enumerate() {
            let first = raid.span_of_stripe(stripe).offset + (index * chunk) as u64;
            let Run { role, offset, len } = raid.locate(first);
            assert_eq!(len, raid.chunk());
            assert_eq!(raid.column_of(stripe, role), Column::Data(index));
            let Some(held) = &members[role.index()] else { continue };
            let held = &held[offset.get() as usize..][..chunk];
            assert!(held == expected, "chunk {index} of stripe {stripe} on member {role}");
            data_seen += 1;
        }
        // Stopped while it was written to, an array may have parity that has not come as far.
        if !golden.clean_shutdown {
            continue;
        }
        for column in [Column::P, Column::Q].into_iter().take(raid.parities()) {
            let role = raid.role_of(stripe, column);
            let expected = match column {
                Column::P => p_of(&raid, &content),
                _ => q_of(&raid, stripe, &content),
            };
            let Some(held) = &members[role.index()] else { continue };
            let held = &held[stripe as usize * chunk..][..chunk];
            assert!(words(held).eq(expected), "{column:?} of stripe {stripe} on member {role}");
            parity_seen += 1;
        }
    }
    let present = members.iter().flatten().count() as u64;
    if golden.clean_shutdown {
        assert_eq!(data_seen + parity_seen, present * raid.stripes());
    } else {
        assert_eq!(data_seen, raid.data() as u64 * raid.stripes());
    }
}

macro_rules! golden {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            check($name);
        }
    )*};
}

golden! {
    raid4_over_3_is_the_kernel_s: "raid4-3",
    raid4_without_parity_is_the_kernel_s: "raid4-3-no-parity",
    raid4_without_a_data_member_is_the_kernel_s: "raid4-4-no-data",
    raid5_over_3_is_the_kernel_s: "raid5-3",
    raid5_with_a_bitmap_is_the_kernel_s: "raid5-3-bitmap",
    raid5_without_a_member_is_the_kernel_s: "raid5-3-degraded",
    raid5_stopped_dead_is_the_kernel_s: "raid5-3-dirty",
    raid5_with_a_partial_parity_log_is_the_kernel_s: "raid5-3-ppl",
    raid5_with_a_spare_is_the_kernel_s: "raid5-3-spare",
    raid5_of_the_old_metadata_is_the_kernel_s: "raid5-3-v0.90",
    raid5_with_larger_chunks_is_the_kernel_s: "raid5-3-v1.0",
    left_asymmetric_over_4_is_the_kernel_s: "raid5-4-la",
    left_symmetric_over_4_is_the_kernel_s: "raid5-4-ls",
    parity_last_over_4_is_the_kernel_s: "raid5-4-parity-last",
    right_asymmetric_over_4_is_the_kernel_s: "raid5-4-ra",
    right_symmetric_over_4_is_the_kernel_s: "raid5-4-rs",
    raid6_over_4_is_the_kernel_s: "raid6-4",
    raid6_without_a_member_is_the_kernel_s: "raid6-4-1missing",
    raid6_over_5_is_the_kernel_s: "raid6-5",
    raid6_without_two_members_is_the_kernel_s: "raid6-5-2missing",
    raid6_left_asymmetric_over_5_is_the_kernel_s: "raid6-5-la",
}

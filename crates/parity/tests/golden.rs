//! The kernel's own arrays: P and Q of their stripes are what the kernel's md wrote.
//!
//! ```text
//!   raid6, 5 members, left-symmetric, stripe s      raid5, 4 members
//!   s=0   D0  D1  D2  P   Q                         left: P goes down from the last member
//!   s=1   D1  D2  P   Q   D0                        right: P goes up from the first
//!   s=2   D2  P   Q   D0  D1                        for XOR the order of data does not matter
//! ```
//!
//! md counts the data of a raid6 from the disk behind Q on, skipping P and Q
//! (`raid6_d0` and `raid6_idx_to_slot`, drivers/md/raid5.c). In symmetric layouts this is the
//! order of the array's addresses too; in the others it is not.

use braid_golden::{Golden, Role, named};
use braid_parity::{pq, q, recover_by_q, recover_two, xor};

/// The data areas of an array's members by slot, as far as they are there and in sync.
struct Members {
    data: Vec<Option<Vec<u8>>>,
    chunk: usize,
}

impl Members {
    fn of(golden: &Golden) -> Members {
        let mut data = vec![None; golden.raid_disks as usize];
        for member in golden.present().filter(|member| member.state == "in_sync") {
            let Role::Slot(slot) = member.role else { continue };
            let start = member.data_offset_bytes.unwrap() as usize;
            let end = start + member.data_bytes.unwrap() as usize;
            data[slot as usize] = Some(golden.expand_member(member.index)[start..end].to_vec());
        }
        Members { data, chunk: golden.chunk_bytes as usize }
    }

    fn count(&self) -> usize {
        self.data.len()
    }

    fn stripes(&self) -> usize {
        self.data.iter().flatten().next().expect("a member").len() / self.chunk
    }

    fn chunk(&self, stripe: usize, slot: usize) -> Option<&[u8]> {
        let data = self.data[slot].as_ref()?;
        Some(&data[stripe * self.chunk..(stripe + 1) * self.chunk])
    }

    /// The chunks of a raid6's stripe: data by power, P, Q.
    fn raid6(&self, stripe: usize, p_slot: usize) -> Stripe<'_> {
        let members = self.count();
        let q_slot = (p_slot + 1) % members;
        let slots = (1..members - 1).map(|after| (q_slot + after) % members);
        let data = slots.map(|slot| self.chunk(stripe, slot)).collect();
        Stripe { data, p: self.chunk(stripe, p_slot), q: self.chunk(stripe, q_slot) }
    }
}

struct Stripe<'a> {
    data: Vec<Option<&'a [u8]>>,
    p: Option<&'a [u8]>,
    q: Option<&'a [u8]>,
}

/// Returns the place of P in the left layouts: on the last member, then on the one before. (Q of a raid6 is on
/// the next one, round the end.)
fn left(stripe: usize, members: usize) -> usize {
    members - 1 - stripe % members
}

/// Returns the place of P in the right layouts.
fn right(stripe: usize, members: usize) -> usize {
    stripe % members
}

/// Returns true if it has data: all zeroes are their own parity.
fn holds_something(chunk: &[u8]) -> bool {
    chunk.iter().any(|byte| *byte != chunk[0])
}

#[test]
fn xor_is_the_parity_of_every_raid5() {
    type PSlot = fn(usize, usize) -> usize;
    let last: PSlot = |_, members| members - 1;
    let arrays: [(&str, PSlot); 7] = [
        ("raid5-3", left),
        ("raid5-3-v1.0", left),
        ("raid5-4-ls", left),
        ("raid5-4-la", left),
        ("raid5-4-rs", right),
        ("raid5-4-ra", right),
        ("raid5-4-parity-last", last),
    ];
    for (name, p_slot) in arrays {
        let members = Members::of(&named(name));
        let mut seen = 0;
        for stripe in 0..members.stripes() {
            let p_slot = p_slot(stripe, members.count());
            let data: Vec<&[u8]> = (0..members.count())
                .filter(|slot| *slot != p_slot)
                .map(|slot| members.chunk(stripe, slot).unwrap())
                .collect();
            let mut p = vec![0xaa; members.chunk];
            xor(&mut p, &data);
            assert!(Some(&p[..]) == members.chunk(stripe, p_slot), "{name} stripe {stripe}");
            seen += usize::from(holds_something(&p));
        }
        assert!(seen > 10, "{name}: {seen} stripes hold something");
    }
}

#[test]
fn p_and_q_are_those_of_every_raid6() {
    for name in ["raid6-4", "raid6-5", "raid6-5-la"] {
        let members = Members::of(&named(name));
        let mut seen = 0;
        for index in 0..members.stripes() {
            let stripe = members.raid6(index, left(index, members.count()));
            let (mut p, mut q) = (vec![0xaa; members.chunk], vec![0xaa; members.chunk]);
            pq(&mut p, &mut q, &stripe.data);
            assert!(Some(&p[..]) == stripe.p, "P of {name}, stripe {index}");
            assert!(Some(&q[..]) == stripe.q, "Q of {name}, stripe {index}");
            seen += usize::from(holds_something(&p) && p != q);
        }
        assert!(seen > 10, "{name}: {seen} stripes hold something");
    }
}

/// Each stripe of `raid6-5-2missing` lacks two of its blocks; the others were written while they
/// were missing. What is lost comes from those that are there, and is what the array reads as.
#[test]
fn what_two_missing_members_held_comes_back() {
    let golden = named("raid6-5-2missing");
    let members = Members::of(&golden);
    assert_eq!(members.data.iter().flatten().count(), 3);
    let length = members.chunk;
    let (mut by_p, mut by_q, mut by_both) = (0, 0, 0);
    for index in 0..members.stripes() {
        let Stripe { mut data, p, q: q_stored } =
            members.raid6(index, left(index, members.count()));
        let lost: Vec<u8> =
            (0..).zip(&data).filter(|(_, block)| block.is_none()).map(|(power, _)| power).collect();
        // A symmetric layout: the array's addresses go by power.
        let content = |power: u8| {
            golden.content_block(((index * 3 + usize::from(power)) * length) as u64, length)
        };
        let (mut a, mut b) = (vec![0xaa; length], vec![0xaa; length]);
        match (&lost[..], p, q_stored) {
            ([one], Some(p), None) => {
                let sources: Vec<&[u8]> = data.iter().flatten().copied().chain([p]).collect();
                xor(&mut a, &sources);
                assert!(a == content(*one), "stripe {index}, power {one} by P");
                by_p += 1;
            }
            ([one], None, Some(q_stored)) => {
                recover_by_q(&mut a, *one, q_stored, &data);
                assert!(a == content(*one), "stripe {index}, power {one} by Q");
                by_q += 1;
            }
            ([one, two], Some(p), Some(q_stored)) => {
                recover_two(&mut a, *one, &mut b, *two, p, q_stored, &data);
                assert!(a == content(*one), "stripe {index}, power {one} of two");
                assert!(b == content(*two), "stripe {index}, power {two} of two");
                by_both += 1;
            }
            (lost, ..) => panic!("stripe {index} of two missing members lost {lost:?}"),
        }
        // And what was not lost is as the kernel left it.
        if let ([one], Some(q_stored)) = (&lost[..], q_stored) {
            data[usize::from(*one)] = Some(&a);
            q(&mut b, &data);
            assert!(b == q_stored, "Q of stripe {index}");
        }
    }
    assert!(by_p > 10 && by_q > 10 && by_both > 10, "{by_p} {by_q} {by_both}");
}

//! Every kernel that this processor can run does what the plain one does, byte for byte: at every
//! length and alignment, with holes, and without a byte beside the targets.

use braid_parity::{Kernel, kernels};
use proptest::prelude::*;

/// Largest start of a block in its memory, and least room behind it: the longest vector.
const MARGIN: usize = 64;

/// Bytes, alignments and holes from a seed.
struct Rng(braid_seed::Rng);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(braid_seed::Rng::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = (0..length.div_ceil(8)).map(|_| self.next());
        words.flat_map(u64::to_le_bytes).take(length).collect()
    }
}

/// A block somewhere in memory that is its own.
struct Block {
    memory: Vec<u8>,
    /// Start of the block; every alignment occurs, for any alignment of the memory.
    start: usize,
    length: usize,
}

impl Block {
    fn random(rng: &mut Rng, length: usize) -> Block {
        let start = rng.below(MARGIN);
        Block { memory: rng.bytes(length + 2 * MARGIN), start, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    /// Returns the block after `change`, checked to change nothing beside it.
    fn changed(&self, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut memory = self.memory.clone();
        let (start, end) = (self.start, self.start + self.length);
        change(&mut memory[start..end]);
        assert_eq!(memory[..start], self.memory[..start], "written before the block");
        assert_eq!(memory[end..], self.memory[end..], "written behind the block");
        memory[start..end].to_vec()
    }
}

/// A stripe of random blocks, some of them holes, with two targets.
struct Stripe {
    data: Vec<Option<Block>>,
    targets: [Block; 2],
}

impl Stripe {
    fn random(seed: u64, length: usize, members: usize) -> Stripe {
        let mut rng = Rng::new(seed);
        // None, few or most of them holes.
        let holes = [0, 1, 7][rng.below(3)];
        let data = (0..members)
            .map(|_| (rng.below(8) >= holes).then(|| Block::random(&mut rng, length)))
            .collect();
        Stripe { data, targets: [0; 2].map(|_| Block::random(&mut rng, length)) }
    }

    /// The data without the blocks of these powers.
    fn without(&self, lost: &[usize]) -> Vec<Option<&[u8]>> {
        self.data
            .iter()
            .enumerate()
            .map(|(power, block)| block.as_ref().filter(|_| !lost.contains(&power)))
            .map(|block| block.map(Block::bytes))
            .collect()
    }
}

/// Calls `change` with copies of both targets; what it makes of them.
fn changed(targets: &[Block; 2], change: impl FnOnce(&mut [u8], &mut [u8])) -> [Vec<u8>; 2] {
    let mut second = None;
    let first = targets[0].changed(|a| {
        second = Some(targets[1].changed(|b| change(a, b)));
    });
    [first, second.expect("the inner closure ran")]
}

/// Everything that `kernel` makes of a stripe. `powers` are of two blocks to lose.
fn results(kernel: &Kernel, stripe: &Stripe, powers: (usize, usize)) -> Vec<Vec<u8>> {
    let [target, other] = &stripe.targets;
    let all = stripe.without(&[]);
    let sources: Vec<&[u8]> = all.iter().copied().flatten().collect();
    let mut results = vec![
        target.changed(|target| kernel.xor(target, &sources)),
        target.changed(|target| kernel.xor_into(target, other.bytes())),
        target.changed(|target| kernel.q(target, &all)),
        target.changed(|target| kernel.update_q(target, powers.0 as u8, other.bytes())),
    ];
    let [p, q] = changed(&stripe.targets, |p, q| kernel.pq(p, q, &all));
    let data = stripe.without(&[powers.0]);
    let lost = powers.0 as u8;
    results.push(target.changed(|target| kernel.recover_by_q(target, lost, &q, &data)));
    if powers.0 != powers.1 {
        let data = stripe.without(&[powers.0, powers.1]);
        let two = changed(&stripe.targets, |a, b| {
            kernel.recover_two((a, powers.0 as u8), (b, powers.1 as u8), (&p, &q), &data);
        });
        results.extend(two);
    }
    results.extend([p, q]);
    results
}

/// The kernels but the plain one, and that.
fn fast_and_plain() -> (Vec<&'static Kernel>, &'static Kernel) {
    let mut fast: Vec<&Kernel> = kernels().collect();
    let plain = fast.pop().expect("there is always the plain one");
    assert_eq!(plain.name(), "scalar");
    (fast, plain)
}

fn check(seed: u64, length: usize, members: usize) {
    let stripe = Stripe::random(seed, length, members);
    let mut rng = Rng::new(!seed);
    let powers = (rng.below(members), rng.below(members));
    let (fast, plain) = fast_and_plain();
    let expected = results(plain, &stripe, powers);
    for kernel in fast {
        let found = results(kernel, &stripe, powers);
        assert!(found == expected, "{}: {length} bytes, {members} members", kernel.name());
    }
    // What was lost comes back.
    let block = |power: usize| {
        stripe.data[power].as_ref().map_or(vec![0; length], |block| block.bytes().to_vec())
    };
    assert_eq!(expected[4], block(powers.0));
    if powers.0 != powers.1 {
        assert_eq!(expected[5..7], [block(powers.0), block(powers.1)]);
    }
}

#[test]
fn every_length_up_to_some_stretches() {
    for length in 0..=1200 {
        check(length as u64, length, 1 + length % 6);
    }
}

#[test]
fn long_blocks() {
    for length in [4096, 16 << 10, 64 << 10, (64 << 10) + 511, (1 << 20) + 13] {
        check(length as u64, length, 5);
    }
}

#[test]
fn every_number_of_members() {
    for members in 1..=255 {
        check(members as u64, 600 + members % 70, members);
    }
}

#[test]
fn every_power_is_a_factor() {
    let (fast, plain) = fast_and_plain();
    let bytes: Vec<u8> = (0..=255).collect();
    for power in 0..255 {
        let with = |kernel: &Kernel| {
            let mut q = vec![0; 256];
            kernel.update_q(&mut q, power, &bytes);
            q
        };
        for kernel in &fast {
            assert_eq!(with(kernel), with(plain), "{} times g^{power}", kernel.name());
        }
    }
}

#[test]
fn no_blocks_at_all_are_zero() {
    for kernel in kernels() {
        let (mut p, mut q, mut sum) = ([1; 100], [2; 100], [3; 100]);
        kernel.pq(&mut p, &mut q, &[]);
        kernel.xor(&mut sum, &[]);
        assert_eq!((p, q, sum), ([0; 100], [0; 100], [0; 100]), "{}", kernel.name());
        kernel.q(&mut [], &[Some(&[]), None]);
    }
}

#[test]
fn the_chosen_kernel_is_the_first() {
    assert_eq!(Some(braid_parity::name()), kernels().next().map(Kernel::name));
    let mut q = [0; 3];
    braid_parity::q(&mut q, &[None, Some(&[1, 0x80, 3])]);
    assert_eq!(q, [2, 0x1d, 6]);
}

proptest! {
    #[test]
    fn kernels_agree(seed: u64, length in 0usize..700, members in 1usize..=255) {
        check(seed, length, members);
    }

    #[test]
    fn an_update_is_what_a_new_parity_would_be(
        seed: u64,
        length in 0usize..700,
        members in 1usize..20,
    ) {
        let parity = |kernel: &Kernel, stripe: &Stripe| {
            changed(&stripe.targets, |p, q| kernel.pq(p, q, &stripe.without(&[])))
        };
        let mut stripe = Stripe::random(seed, length, members);
        let power = Rng::new(seed).below(members);
        for kernel in kernels() {
            let [mut p, mut q] = parity(kernel, &stripe);
            let new = Block::random(&mut Rng::new(seed ^ 1), length);
            let mut difference = new.bytes().to_vec();
            if let Some(old) = &stripe.data[power] {
                kernel.xor_into(&mut difference, old.bytes());
            }
            kernel.xor_into(&mut p, &difference);
            kernel.update_q(&mut q, power as u8, &difference);
            stripe.data[power] = Some(new);
            let after = parity(kernel, &stripe);
            prop_assert!([p, q] == after, "{}", kernel.name());
        }
    }
}

//! The operations, a stretch of the blocks at a time.
//!
//! ```text
//!            at ├─ stretch: N vectors ─┤
//!   D3  ────────┼──────────────────────┼────     sums of the stretch stay in registers while
//!   D2  ────────┼──────────────────────┼────     the blocks are gone through, from the highest
//!   D1  ────────┼──────────────────────┼────     power down:  q = ((d3)·g ^ d2)·g ^ d1 ...
//!   D0  ────────┼──────────────────────┼────
//!   P,Q  ───────┼──────────────────────┼────     each byte is loaded once and stored once
//! ```
//!
//! The rest that is shorter than a stretch is done vector by vector, the rest of that byte by
//! byte, all by the same text. Everything here is inlined into the function of an instruction set
//! ([`Isa::run`]), and so compiled for it.
//!
//! Memory safety does not rest on the callers: stretches are cut from slices, with a check.
//!
//! Stores are plain ones. Parity is written out, or compared, right after it is made. Streaming
//! stores were measured (`bench/`, program `parity`; AVX-512): from memory they gain 10 to 30 %, in
//! cache they lose 15 to 70 %, and the length of a block does not tell which it will be.

#![allow(unsafe_code)]

use super::vector::Vector;
use crate::Kernel;
use crate::field::{divide, factors_of_two, power};

/// An instruction set.
pub(super) trait Isa {
    /// Does the task from end to end, compiled for this instruction set.
    ///
    /// # Safety
    ///
    /// The processor has it.
    unsafe fn run<T: Task>(task: T);
}

/// An operation on blocks of one length.
pub(super) trait Task {
    /// True if it keeps only one sum for each vector of a stretch, so that there are registers for long
    /// stretches.
    const ONE_SUM: bool = false;

    /// The length of the blocks, in bytes.
    fn length(&self) -> usize;

    /// Does the `N` vectors from byte `at` of the blocks.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize);
}

/// Does a task, `N` vectors at a time for as long as there are so many; before, `LONG` at a time
/// where it keeps one sum.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const N: usize, const LONG: usize, T: Task>(mut task: T) {
    let length = task.length();
    let mut at = 0;
    // SAFETY: the caller's, for V; every processor has bytes.
    unsafe {
        while T::ONE_SUM && length - at >= LONG * V::BYTES {
            task.stretch::<V, LONG>(at);
            at += LONG * V::BYTES;
        }
        while length - at >= N * V::BYTES {
            task.stretch::<V, N>(at);
            at += N * V::BYTES;
        }
        while length - at >= V::BYTES {
            task.stretch::<V, 1>(at);
            at += V::BYTES;
        }
        while at < length {
            task.stretch::<u8, 1>(at);
            at += 1;
        }
    }
}

/// The `N` vectors from byte `at` of a block.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn load<V: Vector, const N: usize>(block: &[u8], at: usize) -> [V; N] {
    let bytes = &block[at..at + N * V::BYTES];
    // SAFETY: the caller's, and `bytes` are N vectors long.
    unsafe {
        let mut vectors = [V::zero(); N];
        for (index, vector) in vectors.iter_mut().enumerate() {
            *vector = V::load(bytes.as_ptr().add(index * V::BYTES));
        }
        vectors
    }
}

/// Puts `N` vectors at byte `at` of a block.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn store<V: Vector, const N: usize>(block: &mut [u8], at: usize, vectors: [V; N]) {
    let bytes = &mut block[at..at + N * V::BYTES];
    for (index, vector) in vectors.into_iter().enumerate() {
        // SAFETY: the caller's, and `bytes` are N vectors long.
        unsafe { vector.store(bytes.as_mut_ptr().add(index * V::BYTES)) };
    }
}

/// The sums of two stretches.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn add<V: Vector, const N: usize>(mut sums: [V; N], more: [V; N]) -> [V; N] {
    for (sum, more) in sums.iter_mut().zip(more) {
        // SAFETY: the caller's.
        *sum = unsafe { sum.xor(more) };
    }
    sums
}

/// A stretch times a constant.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn times<V: Vector, const N: usize>(mut vectors: [V; N], constant: u8) -> [V; N] {
    // SAFETY: the caller's.
    unsafe {
        let factor = V::factor(constant);
        for vector in &mut vectors {
            *vector = vector.times(factor);
        }
    }
    vectors
}

/// P and Q of the `N` vectors from byte `at` of the data blocks, by Horner's rule.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn parity<V: Vector, const N: usize>(data: &[Option<&[u8]>], at: usize) -> ([V; N], [V; N]) {
    // SAFETY: the caller's.
    unsafe {
        let mut blocks = data.iter().rev().skip_while(|block| block.is_none());
        let Some(Some(highest)) = blocks.next() else { return ([V::zero(); N], [V::zero(); N]) };
        let mut p: [V; N] = load(highest, at);
        let mut q = p;
        for block in blocks {
            let next = match block {
                Some(block) => load(block, at),
                None => [V::zero(); N],
            };
            for ((p, q), next) in p.iter_mut().zip(&mut q).zip(next) {
                *p = p.xor(next);
                *q = q.double_and_add(next);
            }
        }
        (p, q)
    }
}

/// See [`crate::xor`]; of at least one source.
struct Xor<'a> {
    target: &'a mut [u8],
    first: &'a [u8],
    others: &'a [&'a [u8]],
}

impl Task for Xor<'_> {
    const ONE_SUM: bool = true;

    #[inline(always)]
    fn length(&self) -> usize {
        self.target.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let mut sums: [V; N] = load(self.first, at);
            for source in self.others {
                sums = add(sums, load(source, at));
            }
            store(self.target, at, sums);
        }
    }
}

/// See [`crate::xor_into`].
struct XorInto<'a> {
    target: &'a mut [u8],
    source: &'a [u8],
}

impl Task for XorInto<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.target.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let sums = add::<V, N>(load(self.target, at), load(self.source, at));
            store(self.target, at, sums);
        }
    }
}

/// See [`crate::pq`].
struct Pq<'a> {
    p: &'a mut [u8],
    q: &'a mut [u8],
    data: &'a [Option<&'a [u8]>],
}

impl Task for Pq<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.p.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let (p, q) = parity::<V, N>(self.data, at);
            store(self.p, at, p);
            store(self.q, at, q);
        }
    }
}

/// See [`crate::q`].
struct Q<'a> {
    q: &'a mut [u8],
    data: &'a [Option<&'a [u8]>],
}

impl Task for Q<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.q.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let (_, q) = parity::<V, N>(self.data, at);
            store(self.q, at, q);
        }
    }
}

/// See [`crate::update_q`].
struct UpdateQ<'a> {
    q: &'a mut [u8],
    factor: u8,
    difference: &'a [u8],
}

impl Task for UpdateQ<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.q.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let product = times::<V, N>(load(self.difference, at), self.factor);
            let sums = add(load(self.q, at), product);
            store(self.q, at, sums);
        }
    }
}

/// See [`crate::recover_by_q`].
struct RecoverByQ<'a> {
    target: &'a mut [u8],
    /// 1 over g to the power of the lost block.
    factor: u8,
    q: &'a [u8],
    data: &'a [Option<&'a [u8]>],
}

impl Task for RecoverByQ<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.target.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let (_, q) = parity::<V, N>(self.data, at);
            let difference = add(q, load(self.q, at));
            store(self.target, at, times(difference, self.factor));
        }
    }
}

/// See [`crate::recover_two`].
struct RecoverTwo<'a> {
    a: &'a mut [u8],
    b: &'a mut [u8],
    /// See [`factors_of_two`].
    by_p: u8,
    by_q: u8,
    p: &'a [u8],
    q: &'a [u8],
    data: &'a [Option<&'a [u8]>],
}

impl Task for RecoverTwo<'_> {
    #[inline(always)]
    fn length(&self) -> usize {
        self.a.len()
    }

    #[inline(always)]
    unsafe fn stretch<V: Vector, const N: usize>(&mut self, at: usize) {
        // SAFETY: the caller's.
        unsafe {
            let (p, q) = parity::<V, N>(self.data, at);
            let p = add(p, load(self.p, at));
            let q = add(q, load(self.q, at));
            let a = add(times(p, self.by_p), times(q, self.by_q));
            store(self.a, at, a);
            store(self.b, at, add(p, a));
        }
    }
}

impl Kernel {
    /// The kernel of an instruction set.
    ///
    /// # Safety
    ///
    /// It is given to others only where the processor has that instruction set.
    pub(super) const unsafe fn of<I: Isa>(name: &'static str) -> Kernel {
        Kernel {
            name,
            xor: |target, sources| {
                let Some((first, others)) = sources.split_first() else { return target.fill(0) };
                // SAFETY: the caller has the kernel, so the processor has the set.
                unsafe { I::run(Xor { target, first, others }) }
            },
            xor_into: |target, source| {
                // SAFETY: as before.
                unsafe { I::run(XorInto { target, source }) }
            },
            pq: |p, q, data| {
                // SAFETY: as before.
                unsafe { I::run(Pq { p, q, data }) }
            },
            q: |q, data| {
                // SAFETY: as before.
                unsafe { I::run(Q { q, data }) }
            },
            update_q: |q, block, difference| {
                let factor = power(block);
                // SAFETY: as before.
                unsafe { I::run(UpdateQ { q, factor, difference }) }
            },
            recover_by_q: |target, block, q, data| {
                let factor = divide(1, power(block));
                // SAFETY: as before.
                unsafe { I::run(RecoverByQ { target, factor, q, data }) }
            },
            recover_two: |(a, a_power), (b, b_power), (p, q), data| {
                let (by_p, by_q) = factors_of_two(a_power, b_power);
                // SAFETY: as before.
                unsafe { I::run(RecoverTwo { a, b, by_p, by_q, p, q, data }) }
            },
        }
    }
}

//! braid and the kernel's md on the same members, both ways.
//!
//! ```text
//!   host                      guest: a real kernel, mdadm        host again
//!   braid creates, fills ───▶ assembles, compares, checks, ───▶ braid reads, writes …
//!                             makes a file system
//!   braid reads, writes  ◀─── creates, fills
//! ```
//!
//! Kernels are booted by `klab` (see `lab`), in seconds, so each test has one guest for each
//! turn, and many arrays in it (see `guest`). Without klab the tests say so and are skipped.
//! With `$BRAID_INTEROP=all` they take all arrays, with `raid5,raid6` those whose names have one of
//! these in them; else the few that are marked as quick, and
//! where kernels are emulated half of the tests.

mod bitmaps;
#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod from_kernel;
mod guest;
mod handed_over;
mod lab;
mod parity_crashes;
mod parity_handed_over;
mod shapes;
mod stories;
mod to_kernel;
mod trials;

use common::{Client, MIB, Scratch, UpVolume, Volume, fill};
use lab::Engine;
use shapes::{SHAPES, Shape};

/// The seeds of the two contents, which are files in every shared folder.
const A: u64 = 0xa;
const B: u64 = 0xb;
/// Room for the largest array.
const CONTENT_LEN: u64 = 32 * MIB;
const BLOCK: u64 = MIB;

/// True if all arrays are tested, or all of a selection by the user.
fn all() -> bool {
    std::env::var_os("BRAID_INTEROP").is_some()
}

/// True if an array of this name is wanted: all are, unless `$BRAID_INTEROP` contains parts of names.
fn is_wanted(name: &str) -> bool {
    let wanted = std::env::var("BRAID_INTEROP").unwrap_or_else(|_| "all".into());
    wanted == "all" || wanted.split(',').any(|part| name.contains(part))
}

/// An engine, or nothing, with the reason said.
fn engine_or_skip() -> Option<&'static Engine> {
    Engine::any().map_err(|why| println!("skipped: {why}")).ok()
}

/// True if there is no time for a test that others cover in part; then the reason is printed: an emulated
/// processor takes minutes, and the tests must finish in two.
fn is_too_slow() -> bool {
    let slow = !all() && Engine::any().is_ok_and(Engine::is_emulated);
    if slow {
        println!("skipped: the kernels that boot here are emulated; `make interop` has this test");
    }
    slow
}

/// The arrays of this run, grouped by the kernel that has all their levels.
fn shapes_by_engine() -> Vec<(&'static Engine, Vec<Shape>)> {
    let Some(engine) = engine_or_skip() else { return Vec::new() };
    let wanted = SHAPES.iter().filter(|shape| shape.quick || all());
    let wanted = wanted.filter(|shape| is_wanted(&shape.name())).copied();
    let (linear, others): (Vec<_>, Vec<_>) = wanted.partition(|shape| shape.level == "linear");
    let mut groups = vec![(engine, others)];
    if !linear.is_empty() {
        match Engine::with_linear() {
            Ok(engine) => groups.push((engine, linear)),
            Err(why) => println!("skipped: linear: {why}"),
        }
    }
    groups
}

/// A folder with both contents in it, as `a` and `b`.
fn shared() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("a", CONTENT_LEN, A);
    scratch.file("b", CONTENT_LEN, B);
    scratch
}

/// Writes a part of content `seed`, so that it is durable.
#[track_caller]
fn write(client: &mut Client, seed: u64, offset: u64, length: u64) {
    let end = offset + length;
    let mut at = offset;
    while at < end {
        let len = BLOCK.min(end - at);
        let mut bytes = vec![0; len as usize];
        fill(&mut bytes, seed, at);
        client.write(at, &bytes, false).expect("a write is answered");
        at += len;
    }
    client.flush().expect("a flush is answered");
}

/// Checks that a part is that of content `seed`.
#[track_caller]
fn check(client: &mut Client, seed: u64, offset: u64, length: u64) {
    let end = offset + length;
    let mut at = offset;
    while at < end {
        let len = BLOCK.min(end - at);
        let mut expected = vec![0; len as usize];
        fill(&mut expected, seed, at);
        let bytes = client.read(at, len as u32).expect("a read is answered");
        if let Some(wrong) = (0..bytes.len()).find(|&index| bytes[index] != expected[index]) {
            panic!("byte {} is not that of content {seed:x}", at + wrong as u64);
        }
        at += len;
    }
}

/// Stops a volume, which must end well and with nothing to complain of.
#[track_caller]
fn stop(volume: Volume<'_>) {
    let errors = volume.errors();
    let status = volume.stop();
    assert!(status.success(), "braid ended with {status}: {errors}");
}

/// Scrubs it when nothing else is due, which must find that all agrees, and takes it down.
#[track_caller]
fn scrub_and_down(scratch: &Scratch, volume: UpVolume<'_>) {
    scrub(scratch, &volume).ok();
    volume.down();
}

/// The same for what a shape has: with members missing, a scrub says what it could not compare.
#[track_caller]
fn scrub_shape_and_down(scratch: &Scratch, shape: &shapes::Shape, volume: UpVolume<'_>) {
    let scrubbed = scrub(scratch, &volume);
    if shape.leaves_copies_alone() {
        scrubbed.fails(1, &["have one copy only and were not compared"]);
    } else {
        scrubbed.ok();
    }
    volume.down();
}

fn scrub(scratch: &Scratch, volume: &UpVolume<'_>) -> common::Output {
    common::wait_until("the end of all passes", || to_kernel::is_settled(volume));
    scratch.run(&["scrub", &volume.name, "--wait"])
}

//! The kernel makes an array, braid reads and writes it, the kernel judges what it gets back.

use crate::common::Scratch;
use crate::guest::Guest;
use crate::lab::Engine;
use crate::shapes::Shape;
use crate::trials::Trials;
use crate::{A, B, check, scrub_shape_and_down, shapes_by_engine, shared, stop, write};

const DIRECTION: &str = "kernel → braid → kernel";

/// True if mdadm 4.2 makes it. It refuses raid0 with 0.90, which has no place for the layout.
fn is_made_by_mdadm(shape: &Shape) -> bool {
    !(shape.level == "raid0" && shape.metadata == "0.90")
}

#[test]
fn kernel_to_braid_and_back() {
    if crate::is_too_slow() {
        return;
    }
    let mut trials = Trials::new(DIRECTION);
    for (engine, shapes) in shapes_by_engine() {
        let shapes = shapes.into_iter().filter(is_made_by_mdadm).collect();
        hand_over(engine, shapes, &mut trials);
    }
    trials.finish();
}

fn hand_over(engine: &Engine, shapes: Vec<Shape>, trials: &mut Trials) {
    let scratch = shared();
    let mut first = Guest::new();
    for shape in &shapes {
        for (name, size) in shape.images() {
            scratch.sparse(&name, size);
        }
        first.section(
            &shape.name(),
            &shape.names(),
            &format!("create {}\nsay size $(size)\nfill a\nstop", shape.mdadm_args()),
        );
    }
    let answers = first.run(engine, &scratch);

    let mut second = Guest::new();
    let mut written = Vec::new();
    for shape in shapes {
        let name = shape.name();
        let done = trials.attempt(&name, || {
            let size = answers.of(&name).number("size");
            let middle = read_and_write(&scratch, &shape, size);
            (size, middle)
        });
        let Some((size, (start, length))) = done else { continue };
        let end = start + length;
        let degraded = shape.missing.len();
        let judge_copies = if shape.is_redundant() {
            format!("[ $(<$SYS/degraded) = {degraded} ]\n[ $(<$SYS/sync_action) = idle ]\ncheck")
        } else {
            String::new()
        };
        second.section(
            &name,
            &shape.names(),
            &format!(
                "assemble
                [ $(size) = {size} ]
                same a 0 {start}
                same b {start} {length}
                same a {end} {rest}
                {judge_copies}
                stop",
                rest = size - end
            ),
        );
        written.push(shape);
    }
    let answers = second.run(engine, &scratch);
    for shape in written {
        let name = shape.name();
        let held = trials.attempt(&name, || answers.of(&name).verdict());
        if let Some(result) = held {
            trials.held(engine, &name, &result);
        }
    }
}

/// Checks that braid finds content A, and writes B into the middle, from within one chunk into
/// another; answers where.
fn read_and_write(scratch: &Scratch, shape: &Shape, size: u64) -> (u64, u64) {
    let volume = scratch.serve(&shape.stack(), &[]);
    let mut client = volume.client();
    assert_eq!(client.size(), size, "the array's size");
    check(&mut client, A, 0, size);
    let start = size / 4 / 4096 * 4096 + 512;
    let length = size / 2 / 4096 * 4096;
    write(&mut client, B, start, length);
    check(&mut client, B, start, length);
    drop(client);
    stop(volume);
    if !shape.has_nothing_to_compare() {
        let options = ["--name", &shape.name(), "--attach", "none"];
        scrub_shape_and_down(scratch, shape, scratch.up(&shape.stack(), &options));
    }
    (start, length)
}

//! braid makes an array, the kernel judges it and makes a file system on it, braid reads that,
//! writes everything anew, and the kernel judges again.

use std::path::Path;
use std::process::Stdio;

use crate::common::{MIB, Scratch, Tool, UpVolume, assert_same_bytes, start, wait_until};
use crate::guest::Guest;
use crate::lab::Engine;
use crate::shapes::Shape;
use crate::trials::Trials;
use crate::{A, B, scrub_shape_and_down, shapes_by_engine, shared, stop, write};

const DIRECTION: &str = "braid → kernel → braid → kernel";

#[test]
fn braid_to_kernel_and_back() {
    if let Some(program) = crate::common::first_missing(&["nbdcopy", "fsck.ext4", "debugfs"]) {
        println!("skipped: {program} is not installed");
        return;
    }
    let mut trials = Trials::new(DIRECTION);
    for (engine, shapes) in shapes_by_engine() {
        hand_over(engine, shapes, &mut trials);
    }
    trials.finish();
}

fn hand_over(engine: &Engine, shapes: Vec<Shape>, trials: &mut Trials) {
    let scratch = shared();
    let create =
        |shape: &Shape| Some((*shape, trials.attempt(&shape.name(), || make(&scratch, shape))?));
    let made: Vec<(Shape, u64)> = shapes.iter().filter_map(create).collect();
    let mut first = Guest::new();
    for (shape, size) in &made {
        let body = format!("{}\nfilesystem\nstop", judge(shape, "a", *size));
        first.section(&shape.name(), &shape.names(), &body);
    }
    let answers = first.run(engine, &scratch);

    let mut second = Guest::new();
    let mut written = Vec::new();
    for (shape, size) in made {
        let name = shape.name();
        let done = trials.attempt(&name, || {
            answers.of(&name);
            assert_clean(&scratch, &shape);
            read_filesystem(&scratch, &shape);
            if !shape.has_nothing_to_compare() {
                scrub_shape_and_down(&scratch, &shape, scratch.up(&name, &["--attach", "none"]));
            }
            let volume = scratch.serve(&shape.stack(), &[]);
            write(&mut volume.client(), B, 0, size);
            stop(volume);
            assert_clean(&scratch, &shape);
        });
        if done.is_some() {
            let body = format!("{}\nstop", judge(&shape, "b", size));
            second.section(&name, &shape.names(), &body);
            written.push(shape);
        }
    }
    let answers = second.run(engine, &scratch);
    for shape in written {
        let name = shape.name();
        let held = trials.attempt(&name, || answers.of(&name).verdict());
        if let Some(verdict) = held {
            trials.held(engine, &name, &verdict);
        }
    }
}

/// Creates it and writes content A; answers the array's size.
fn make(scratch: &Scratch, shape: &Shape) -> u64 {
    for (name, size) in shape.images() {
        scratch.sparse(&name, size);
    }
    let name = shape.name();
    scratch.braid().args(["create", &name]).args(shape.braid_args()).run().ok();
    let volume = scratch.up(&name, &["--attach", "none"]);
    let mut client = volume.client();
    let size = client.size();
    write(&mut client, A, 0, size);
    drop(client);
    wait_until("the end of the resync", || is_settled(&volume));
    volume.down();
    assert_clean(scratch, shape);
    size
}

/// True if no pass runs or is due over its arrays.
pub(crate) fn is_settled(volume: &UpVolume<'_>) -> bool {
    let status = volume.status();
    let arrays = status["arrays"].as_array().expect("a status has arrays");
    arrays.iter().all(|array| array["job"].is_null() && array["resync_from_bytes"].is_null())
}

/// The script by which a guest checks that the array is whole and holds `content`.
fn judge(shape: &Shape, content: &str, size: u64) -> String {
    let mut script = format!("assemble\n[ $(size) = {size} ]\nsame {content}\n");
    if shape.is_redundant() {
        let degraded = shape.missing.len();
        script +=
            &format!("[ $(<$SYS/degraded) = {degraded} ]\n[ $(<$SYS/sync_action) = idle ]\ncheck");
    }
    script
}

/// Asserts that the superblocks are clean.
fn assert_clean(scratch: &Scratch, shape: &Shape) {
    for name in shape.names() {
        let output = scratch.run(&["examine", &name]).ok();
        let state = output.out.lines().find(|line| line.trim_start().starts_with("State :"));
        assert!(state.is_some_and(|state| state.contains("clean")), "{name}: {output}");
    }
}

/// Reads the file system that the guest made, by NBD and by `braid cat`.
fn read_filesystem(scratch: &Scratch, shape: &Shape) {
    let image = scratch.join("filesystem");
    let volume = scratch.serve(&shape.stack(), &["--read-only"]);
    Tool::new("nbdcopy").arg(volume.uri()).arg(&image).run().ok();
    stop(volume);
    let printed = scratch.join("printed");
    cat(scratch, &shape.stack(), &printed);
    assert_same_bytes(&image, &printed);
    Tool::new("fsck.ext4").args(["-f", "-n"]).arg(&image).run().ok();
    for (inside, content) in [("/a", "a"), ("/sub/b", "b")] {
        let file = scratch.join("extracted");
        let dump = format!("dump {inside} {}", file.display());
        Tool::new("debugfs").arg("-R").arg(dump).arg(&image).run().ok();
        assert!(scratch.read("extracted") == scratch.read(content)[..MIB as usize], "{inside}");
    }
}

/// `braid cat` into a file.
fn cat(scratch: &Scratch, stack: &str, into: &Path) {
    let mut command = scratch.braid().args(["cat", stack]).into_command();
    let file = std::fs::File::create(into).expect("a file can be made");
    let mut child = start(command.stdin(Stdio::null()).stdout(file)).expect("braid can be started");
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "braid cat {stack}: {status}");
}

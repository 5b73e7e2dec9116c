//! A mirror over a slow way, beside its prediction.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{MIB, Scratch, pattern, skip_without};
use crate::far::{Far, member, socket};

/// The delay of each request of the server, in milliseconds: long beside all that a busy machine adds.
const DELAY_MS: u64 = 200;
const WRITERS: u64 = 4;
const BLOCK: u64 = 4096;

/// Returns the time of a write, and of a read, of a mirror that keeps so many requests in flight, as predicted, and the
/// command that creates the mirror.
fn predicted(scratch: &Scratch) -> (f64, f64, String) {
    let far = format!(
        "kind = \"remote\"\nlabel = \"far\"\ncapacity = {}\n[constant]\n\
         read_rate = [1e9, \"memory\"]\nwrite_rate = [1e9, \"memory\"]\nround_trip_us = [{}, \"the filter\"]\n\
         server_us = [0, \"memory\"]\nloss = [0, \"a socket\"]\nretry_us = [0, \"a socket\"]\n",
        64 * MIB,
        DELAY_MS * 1000
    );
    std::fs::write(scratch.join("far.toml"), far).expect("a profile");
    let of = |rw: &str| {
        let job = format!(
            "[one]\nioengine=libaio\ndirect=1\nrw={rw}\nbs={BLOCK}\niodepth={WRITERS}\nsize=16m\n"
        );
        std::fs::write(scratch.join("job.fio"), job).expect("a job");
        let members = ["advise", "ram", "./far.toml", "--size", "64M", "--workload", "./job.fio"];
        let need = ["--need", "redundancy", "--json"];
        let advice = scratch.run(&[&members[..], &need].concat()).ok().json();
        let layouts = advice["layouts"].as_array().expect("layouts");
        let mirror = layouts.iter().find(|one| one["level"] == "raid1").expect("a mirror");
        let rate = mirror["predicted_bytes_per_s"].as_f64().expect("a rate");
        let create = advice["create"].as_str().map(str::to_owned);
        ((WRITERS * BLOCK) as f64 / rate, create.unwrap_or_default())
    };
    let ((write, create), (read, _)) = (of("randwrite"), of("randread"));
    (write, read, create)
}

#[test]
fn a_mirror_over_a_slow_way_is_as_slow_as_predicted() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let (write, read, create) = predicted(&scratch);
    assert!(create.ends_with(" --write-mostly MEMBER2"), "{create}");

    let delay = format!("{DELAY_MS}ms");
    let [wdelay, rdelay] = ["wdelay", "rdelay"].map(|name| format!("{name}={delay}"));
    let size = (64 * MIB).to_string();
    let args = ["--filter=delay", "--threads=16", "memory", &size, &wdelay, &rdelay];
    let _far = Far::nbdkit(&args, &socket(&scratch));
    scratch.sparse("near.img", 64 * MIB);
    let far = member(&socket(&scratch), "");
    let create = ["create", "home", "--level", "1", "--bitmap", "none", "--assume-clean"];
    scratch.run(&[&create[..], &["near.img", &far, "--write-mostly", &far]].concat()).ok();
    let volume = scratch.up("home", &["--attach", "none"]);

    // The shortest is the one that the machine, which does other things besides, delayed least.
    let shortest = |writes: bool| {
        let times: Vec<Duration> = std::thread::scope(|scope| {
            let one = |writer: u64| {
                let mut client = volume.client();
                scope.spawn(move || {
                    let time = |turn: u64| {
                        let at = (writer * 1000 + turn) * BLOCK;
                        let begun = Instant::now();
                        match writes {
                            true => client.write(at, &pattern(turn, 0, BLOCK), false),
                            false => client.read(at, BLOCK as u32).map(drop),
                        }
                        .expect("an answer");
                        begun.elapsed()
                    };
                    (0..10).map(time).collect::<Vec<_>>()
                })
            };
            let writers: Vec<_> = (0..WRITERS).map(one).collect();
            writers.into_iter().flat_map(|one| one.join().expect("a writer")).collect()
        });
        times.iter().min().expect("some were made").as_secs_f64()
    };
    let measured = shortest(true);
    println!("a write takes {measured:.4} s, predicted were {write:.4} s");
    assert!((measured / write).ln().abs() < 0.1, "{measured} s, predicted were {write} s");
    // Reads stay near, in the prediction as on the machine.
    let delay = Duration::from_millis(DELAY_MS).as_secs_f64();
    let measured = shortest(false);
    println!("a read takes {measured:.4} s, predicted were {read:.6} s");
    assert!(measured < delay / 2.0 && read < delay / 2.0, "{measured} s, {read} s");
    let status: Value = volume.status();
    assert!(status["members"][1]["remote"]["round_trip_us"].as_u64().is_some(), "{status}");
    volume.down();
}

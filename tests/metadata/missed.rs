//! Members that are gone, blank, cut off or another array's: an array that can do without them is started
//! without them if it is ordered, and a refusal gives the reason.

use crate::common::{Scratch, UpVolume};
use crate::{FAILED, REFUSED, SIZE, Unusable, members};

const NONE: [&str; 2] = ["--attach", "none"];

/// A volume of this level, made and never up.
fn made(level: &str, names: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    members(&scratch, names);
    let create = ["create", "home", "--level", level, "--assume-clean", "--"];
    scratch.run(&[&create[..], names].concat()).ok();
    scratch
}

fn up<'a>(scratch: &'a Scratch, options: &[&str]) -> UpVolume<'a> {
    scratch.up("home", &[&NONE, options].concat())
}

fn warnings(volume: &UpVolume<'_>) -> String {
    volume.status()["warnings"].to_string()
}

#[test]
fn an_array_goes_on_without_a_member_that_cannot_be_used() {
    for (level, names) in
        [("raid1", &["a.img", "b.img"][..]), ("raid5", &["a.img", "b.img", "c.img"])]
    {
        for (unusable, why) in Unusable::ALL {
            let scratch = made(level, names);
            unusable.make(&scratch, "b.img");
            let parts = ["role 1 missing", "b.img: ", why, "braid up home --degraded"];
            scratch.run(&["up", "home", "--attach", "none"]).fails(REFUSED, &parts);
            let volume = up(&scratch, &["--degraded"]);
            let warnings = warnings(&volume);
            assert!(
                warnings.contains("b.img is not used: ") && warnings.contains(why),
                "{warnings}"
            );
            assert_eq!(volume.status()["state"], "degraded");
            volume.client().write(0, &[7; 4096], true).expect("it can be written");
            volume.down();
            // From now on the array knows.
            up(&scratch, &[]).down();
            let cat = scratch.run(&["cat", "home", "--length", "4"]).ok();
            assert!(cat.out == "\u{7}\u{7}\u{7}\u{7}" && cat.err.contains("b.img is not used"));
        }
    }
}

#[test]
fn an_array_that_cannot_do_without_them_says_what_is_wrong_with_each() {
    for (unusable, why) in Unusable::ALL {
        let scratch = made("raid5", &["a.img", "b.img", "c.img"]);
        unusable.make(&scratch, "b.img");
        Unusable::Gone.make(&scratch, "c.img");
        let parts = ["too few members", "b.img: ", why, "c.img: it does not exist"];
        for options in [&["--degraded"][..], &[]] {
            let args = [&["up", "home", "--attach", "none"][..], options].concat();
            scratch.run(&args).fails(REFUSED, &parts);
        }
    }
}

#[test]
fn who_is_named_in_the_record_and_not_needed_any_more_is_ignored() {
    let scratch = made("raid1", &["a.img", "b.img"]);
    scratch.sparse("c.img", SIZE);
    let volume = up(&scratch, &[]);
    scratch.run(&["member", "replace", "home", "b.img", "c.img"]).ok();
    crate::common::wait_until("the end of the replacement", || {
        volume.status()["arrays"][0]["members"].to_string().contains("faulty")
    });
    volume.down();
    let record = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
    assert!(record.contains("b.img"), "the record still names it: {record}");
    std::fs::remove_file(scratch.join("b.img")).expect("a member");
    let volume = up(&scratch, &[]);
    assert_eq!(volume.status()["state"], "online");
    assert!(warnings(&volume).contains("b.img is not used: it does not exist"));
    volume.down();
    // Given to another array it is none of this one, either.
    members(&scratch, &["b.img", "d.img"]);
    scratch.run(&["create", "other", "--level", "raid1", "--assume-clean", "b.img", "d.img"]).ok();
    let volume = up(&scratch, &[]);
    assert!(warnings(&volume).contains("b.img is not used: it belongs to another array now"));
}

#[test]
fn a_warning_of_the_start_goes_with_its_cause() {
    let scratch = made("raid1", &["a.img", "b.img"]);
    scratch.sparse("c.img", SIZE);
    std::fs::remove_file(scratch.join("b.img")).expect("a member");
    let volume = up(&scratch, &["--degraded"]);
    assert!(warnings(&volume).contains("b.img is not used: it does not exist"));
    let problems = scratch.run(&["status", "-x"]).ok();
    assert!(
        problems.out.contains("degraded") && problems.out.contains("b.img is not used"),
        "{problems}"
    );
    scratch.run(&["member", "add", "home", "c.img"]).ok();
    crate::common::wait_until("the end of the recovery", || volume.status()["state"] == "online");
    assert_eq!(warnings(&volume), "[]", "the array lacks nothing any more");
    assert_eq!(scratch.run(&["status", "-x"]).ok().out, "all volumes that are up are well\n");
}

#[test]
fn a_member_that_is_in_use_is_not_taken_for_one_that_is_missing() {
    let scratch = made("raid1", &["a.img", "b.img"]);
    let other = scratch.serve("./b.img", &["--force", "./b.img"]);
    let parts = ["b.img is refused: it is in use"];
    scratch.run(&["up", "home", "--attach", "none", "--degraded"]).fails(REFUSED, &parts);
    drop(other);
}

#[test]
fn members_that_are_named_are_passed_over_when_somebody_says_so() {
    for (unusable, why) in Unusable::ALL {
        let scratch = made("raid1", &["a.img", "b.img"]);
        std::fs::remove_file(scratch.config_file("home")).expect("a record");
        unusable.make(&scratch, "b.img");
        let refused = scratch.run(&["assemble", "a.img", "b.img"]);
        assert!([FAILED, REFUSED].contains(&refused.code()), "{refused}");
        for part in [why, "without it: braid assemble ", "a.img --degraded"] {
            assert!(refused.err.contains(part), "{part:?} in {refused}");
        }
        let taken = scratch.run(&["assemble", "a.img", "b.img", "--degraded"]).ok();
        assert!(taken.err.contains("passed over") && taken.err.contains(why), "{taken}");
        up(&scratch, &["--degraded"]).down();
    }
}

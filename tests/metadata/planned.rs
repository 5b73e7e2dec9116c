//! A plan is the order up to where it begins: it changes nothing, and is refused if and only if the order is, with the
//! same code.

use std::path::Path;

use braid_control::{
    CacheOrder, DeviceOrder, ErrorCode, Failure, OUTPUT_VERSION, Order, Plan, Status, WholeOrder,
    get_status, post_order, post_plan,
};

use super::{MIB, Scratch, Unchanged};
use crate::common::UpVolume;

const NONE: [&str; 4] = ["--name", "v", "--attach", "none"];

/// A volume called `v` in the state that a test is about.
type State = fn(&Scratch) -> UpVolume<'_>;

fn plan(scratch: &Scratch, order: &Order) -> Plan {
    post_plan(&scratch.run_folder().join("v.sock"), order).expect("a plan")
}

/// Files beside the members: devices to take in, images.
fn files(scratch: &Scratch) {
    for name in ["a.img", "b.img", "s.img", "n.img", "swap.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch.sparse("tiny.img", 512);
    scratch.patch("swap.img", 4086, b"SWAPSPACE2");
}

fn array(scratch: &Scratch) -> UpVolume<'_> {
    let create = ["create", "v", "--level", "raid1", "--assume-clean", "--spare", "s.img"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    scratch.up("v", &NONE[2..])
}

fn degraded(scratch: &Scratch) -> UpVolume<'_> {
    let create = ["create", "v", "--level", "raid1", "--assume-clean", "a.img", "b.img"];
    scratch.run(&create).ok();
    let volume = scratch.up("v", &NONE[2..]);
    scratch.run(&["member", "fail", "v", "b.img"]).ok();
    volume
}

fn striped(scratch: &Scratch) -> UpVolume<'_> {
    scratch.run(&["create", "v", "--level", "raid0", "a.img", "b.img"]).ok();
    scratch.up("v", &NONE[2..])
}

fn ram(scratch: &Scratch) -> UpVolume<'_> {
    scratch.up("ram(1M)", &NONE)
}

fn locked(scratch: &Scratch) -> UpVolume<'_> {
    let volume = ram(scratch);
    scratch.run(&["lock", "v"]).ok();
    volume
}

fn read_only(scratch: &Scratch) -> UpVolume<'_> {
    let create = ["create", "v", "--level", "raid1", "--assume-clean", "a.img", "b.img"];
    scratch.run(&create).ok();
    scratch.up("v", &[&NONE[2..], &["--read-only"]].concat())
}

fn cached(scratch: &Scratch) -> UpVolume<'_> {
    scratch.up("cache(size=1M, ./n.img)", &NONE)
}

/// Orders of all kinds, with what suits a state and what does not.
fn orders(scratch: &Scratch) -> Vec<Order> {
    let text = |name: &str| scratch.join(name).display().to_string();
    let path = |name: &str| scratch.join(name);
    let add = |name: &str, force, again| Order::Add {
        member: path(name),
        force,
        again,
        write_mostly: false,
        array: None,
    };
    let scrub = |repair, cancel| Order::Scrub { repair, force: false, cancel, array: None };
    let until = |array: Option<&str>| Order::ScrubUntil {
        repair: false,
        force: false,
        until_ms: 9_000_000_000_000,
        latency_us_p99: None,
        array: array.map(str::to_owned),
    };
    let speed = |min_bytes_per_second, max_bytes_per_second| Order::Speed {
        min_bytes_per_second,
        max_bytes_per_second,
        latency_us_p99: None,
        array: None,
    };
    let bitmap = |none: bool, chunk_bytes: Option<u64>| {
        let (existing, write_behind, array) = (false, None, None);
        Order::Bitmap { none, existing, chunk_bytes, write_behind, array }
    };
    let behind = |none: bool, writes: u32| {
        let (existing, chunk_bytes, write_behind) = (!none, None, Some(writes));
        Order::Bitmap { none, existing, chunk_bytes, write_behind, array: None }
    };
    let mode = |mode: &str, parameters: &str| CacheOrder::Mode {
        mode: mode.to_owned(),
        parameters: parameters.to_owned(),
    };
    let attach = |parameters: &str| CacheOrder::Attach { parameters: parameters.to_owned() };
    let mut all = vec![
        add("n.img", false, false),
        add("n.img", false, true),
        add("b.img", false, true),
        add("a.img", false, false),
        add("tiny.img", false, false),
        add("swap.img", false, false),
        add("swap.img", true, false),
        add("nowhere.img", false, false),
        Order::Retest { array: None },
        Order::Retest { array: Some("other".to_owned()) },
        Order::Device(DeviceOrder::Back { device: path("n.img") }),
        Order::Device(DeviceOrder::Gone { device: text("b.img") }),
        Order::Device(DeviceOrder::Gone { device: text("n.img") }),
        scrub(false, false),
        scrub(true, false),
        scrub(false, true),
        until(None),
        until(Some("other")),
        speed(None, Some(50 * MIB)),
        speed(Some(50 * MIB), Some(MIB)),
        bitmap(true, None),
        bitmap(false, None),
        bitmap(false, Some(4097)),
        behind(false, 8),
        behind(true, 8),
    ];
    for name in ["a.img", "b.img", "s.img", "nowhere.img"] {
        all.push(Order::Fail { member: text(name), array: None });
        all.push(Order::Remove { member: text(name), array: None });
        let (member, with) = (text(name), path("n.img"));
        all.push(Order::Replace { member, with, force: false, write_mostly: false, array: None });
    }
    all.extend([0, 1, 2, 3].map(|count| Order::RaidDisks { count, array: None }));
    all.extend(
        [None, Some(4096), Some(1 << 50)].map(|bytes| Order::MemberSize { bytes, array: None }),
    );
    let save = |name: &str, force| WholeOrder::Save { file: path(name), force };
    let restore = |name: &str, force| WholeOrder::Restore { file: path(name), force };
    let whole = [
        WholeOrder::Lock { force: false },
        WholeOrder::Unlock,
        WholeOrder::Erase { force: false },
        WholeOrder::Resize { bytes: 2 * MIB },
        WholeOrder::Resize { bytes: MIB },
        WholeOrder::Resize { bytes: MIB / 2 },
        WholeOrder::Resize { bytes: MIB / 2 + 1 },
        WholeOrder::Resize { bytes: 1 << 50 },
        save("image", false),
        save("n.img", false),
        save("n.img", true),
        restore("n.img", true),
        restore("nowhere", false),
    ];
    all.extend(whole.map(Order::Whole));
    let cache = [
        attach("size=1M"),
        attach("size=8T"),
        attach("size=1M, mode=write-back, volatile=yes"),
        attach("bytes=1"),
        attach(&format!("size=1M, warm={}", text("swap.img"))),
        attach(&format!("size=1M, mode=write-back, log={}", text("tiny.img"))),
        CacheOrder::Detach,
        CacheOrder::Resize { bytes: 2 * MIB },
        CacheOrder::Resize { bytes: 1 },
        mode("write-around", ""),
        mode("write-back", "volatile=yes"),
        mode("fast", ""),
        CacheOrder::Drain { bytes_per_second: None },
    ];
    all.extend(cache.map(Order::Cache));
    all
}

/// The parts of a status that orders change.
fn seen(scratch: &Scratch) -> String {
    let status = get_status(&scratch.run_folder().join("v.sock")).expect("a status");
    let Status { device, arrays, stack, jobs, rams, .. } = status;
    let arrays: Vec<_> = arrays
        .into_iter()
        .map(|one| format!("{:?} {:?} {:?} {}", one.members, one.log, one.requested, one.events))
        .collect();
    format!("{device:?} {arrays:?} {stack} {jobs:?} {rams:?}")
}

fn given(scratch: &Scratch, order: &Order) -> Result<bool, Failure> {
    let answer = post_order(&scratch.run_folder().join("v.sock"), order, 0).expect("an answer");
    answer.map(|carried| carried.changed)
}

/// Plans all orders in a state, gives those that are refused, and each of the others in the same state anew.
fn plans_are_the_orders(state: State) {
    let scratch = Scratch::new();
    files(&scratch);
    let volume = state(&scratch);
    let orders = orders(&scratch);
    let (unchanged, before) = (Unchanged::since_now(&scratch), seen(&scratch));
    let plans: Vec<Plan> = orders.iter().map(|order| plan(&scratch, order)).collect();
    assert_eq!(seen(&scratch), before, "plans change nothing");
    unchanged.holds("plans");
    let mut possible = Vec::new();
    for (order, plan) in orders.into_iter().zip(plans) {
        match plan.refusal {
            Some(refusal) => {
                assert_eq!(
                    (plan.changes, given(&scratch, &order)),
                    (false, Err(refusal)),
                    "{order:?}"
                );
            }
            None => possible.push((order, plan)),
        }
    }
    volume.down();
    assert!(!possible.is_empty(), "no order is possible in this state");
    for (order, plan) in possible {
        let again = Scratch::new();
        files(&again);
        let volume = state(&again);
        let order = moved(&order, scratch.path(), again.path());
        let changed = match given(&again, &order) {
            Ok(changed) => changed,
            // A faulty member is examined when the array has let go of it.
            Err(failure) if failure.code == ErrorCode::NotByBitmap && is_faulty_again(&order) => {
                true
            }
            Err(failure) => panic!("{order:?}: {failure:?}"),
        };
        assert_eq!((changed, plan.effect.is_empty()), (plan.changes, false), "{order:?}");
        volume.down();
    }
}

/// Returns true if the order adds the member that is faulty in a degraded array.
fn is_faulty_again(order: &Order) -> bool {
    matches!(order, Order::Add { member, again: true, .. } if member.ends_with("b.img"))
}

/// The same order for files in another folder.
fn moved(order: &Order, from: &Path, to: &Path) -> Order {
    let text = serde_json::to_string(order).expect("JSON");
    let text = text.replace(&from.display().to_string(), &to.display().to_string());
    serde_json::from_str(&text).expect("an order")
}

#[test]
fn for_an_array_with_a_spare() {
    plans_are_the_orders(array);
}

#[test]
fn for_a_degraded_array() {
    plans_are_the_orders(degraded);
}

#[test]
fn for_an_array_without_redundancy() {
    plans_are_the_orders(striped);
}

#[test]
fn for_a_ram_disk() {
    plans_are_the_orders(ram);
}

#[test]
fn for_a_locked_ram_disk() {
    plans_are_the_orders(locked);
}

#[test]
fn for_a_read_only_array() {
    plans_are_the_orders(read_only);
}

#[test]
fn for_a_volume_with_a_cache() {
    plans_are_the_orders(cached);
}

#[test]
fn the_command_line_shows_the_plan_or_the_refusal() {
    let scratch = Scratch::new();
    files(&scratch);
    let volume = array(&scratch);
    let unchanged = Unchanged::since_now(&scratch);
    let shown = |args: &[&str], text: &str| {
        let output = scratch.run(&[args, &["--plan"]].concat()).ok();
        assert!(output.out.contains(text), "{output}");
    };
    shown(&["member", "fail", "v", "b.img"], "as if it had failed");
    shown(&["member", "fail", "v", "b.img"], "\nRisk: Until a member is filled");
    shown(&["member", "add", "v", "n.img"], "becomes a spare");
    shown(&["scrub", "v", "--for", "1h"], "pauses when its time is over");
    shown(
        &["grow", "v", "--bitmap", "none"],
        "Nothing to do: the array has no write-intent bitmap.",
    );
    shown(&["unlock", "v"], "Nothing to do: v is not locked.");
    shown(&["cache", "attach", "v", "size=1M"], "Puts a cache (size=1M) in front of v");
    let output = scratch.run(&["member", "fail", "v", "b.img", "--plan", "--json"]).ok();
    let plan: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(
        (&plan["changes"], &plan["output_version"]),
        (&true.into(), &OUTPUT_VERSION.into()),
        "{plan}"
    );
    for (args, text) in [
        (&["member", "remove", "v", "a.img"][..], "only a faulty member or a spare"),
        (&["member", "add", "v", "swap.img"], "swap"),
        (&["resize", "v", "2M"], "no RAM disk"),
    ] {
        let planned = scratch.run(&[args, &["--plan"]].concat()).fails(3, &[text]);
        assert_eq!(planned.err, scratch.run(args).fails(3, &[text]).err, "the order says the same");
    }
    unchanged.holds("plans and refusals");
    volume.down();
}

//! The record of a volume follows its members, wherever an order comes from, and whenever its process is killed.

use braid_control::{Carried, ErrorCode, Failure, Order, post_order};

use super::{MIB, Scratch};

const NONE: [&str; 2] = ["--attach", "none"];

/// The array `home` of a.img and b.img, and e.img beside it.
fn home() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "e.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "a.img", "b.img"];
    scratch.run(&create).ok();
    scratch
}

/// Gives an order as any program may, over the control socket.
fn order(scratch: &Scratch, order: &Order) -> Result<Carried, Failure> {
    post_order(&scratch.run_folder().join("home.sock"), order, 0).expect("an answer")
}

fn replace_b_by_e(scratch: &Scratch) -> [Order; 3] {
    let path = |name: &str| scratch.join(name).display().to_string();
    [
        Order::Fail { member: path("b.img"), array: None },
        Order::Remove { member: path("b.img"), array: None },
        Order::Add {
            member: scratch.join("e.img"),
            force: false,
            again: false,
            write_mostly: false,
            array: None,
        },
    ]
}

#[test]
fn an_order_over_the_control_socket_changes_the_record_before_it_is_answered() {
    let scratch = home();
    let volume = scratch.up("home", &NONE);
    for one in &replace_b_by_e(&scratch) {
        order(&scratch, one).expect("it is carried out");
    }
    let record = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
    assert!(record.contains("e.img") && !record.contains("b.img"), "{record}");
    // The identity and the array of the newcomer are known, too.
    assert_eq!(record.matches("\narray = ").count(), 2, "{record}");
    volume.down();
    scratch.up("home", &NONE).down();
}

#[test]
fn a_volume_that_is_killed_after_any_order_starts_with_the_members_it_had() {
    for orders in 1..=3 {
        let scratch = home();
        let volume = scratch.up("home", &NONE);
        for one in &replace_b_by_e(&scratch)[..orders] {
            order(&scratch, one).expect("it is carried out");
        }
        volume.kill();
        drop(volume);
        let mut options = NONE.to_vec();
        options.extend((orders < 3).then_some("--degraded"));
        let up = scratch.up("home", &options);
        let names = up.status()["arrays"][0]["members"].to_string();
        assert_eq!(names.contains("e.img"), orders == 3, "after {orders} orders: {names}");
        assert!(!names.contains("b.img") || orders == 1, "after {orders} orders: {names}");
        up.down();
    }
}

#[test]
fn a_device_that_is_refused_is_not_recorded() {
    let scratch = home();
    scratch.sparse("small.img", MIB);
    let volume = scratch.up("home", &NONE);
    let before = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
    let member = scratch.join("small.img");
    let answer = order(
        &scratch,
        &Order::Add { member, force: false, again: false, write_mostly: false, array: None },
    );
    assert_eq!(answer.expect_err("it is too small").code, ErrorCode::Unfit);
    assert_eq!(std::fs::read_to_string(scratch.config_file("home")).expect("a record"), before);
    volume.down();
}

#[test]
fn a_member_that_was_recorded_and_never_taken_in_is_passed_over() {
    let scratch = home();
    scratch.up("home", &NONE).down();
    let record = std::fs::read_to_string(scratch.config_file("home")).expect("a record");
    let (b, e) = (scratch.join("b.img"), scratch.join("e.img"));
    let listed = format!("{}, {})", b.display(), e.display());
    let with_e = record.replacen(&format!("{})", b.display()), &listed, 1);
    assert_ne!(record, with_e);
    std::fs::write(scratch.config_file("home"), with_e).expect("a record");
    let up = scratch.up("home", &NONE);
    assert_eq!(up.status()["state"], "online", "{}", up.status());
    up.down();
}

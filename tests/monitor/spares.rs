//! Two real mirrors of one `spare-group`: a member of one fails, and the other's spare comes.

use std::path::Path;

use crate::common::{MIB, Scratch, UpVolume, wait_until};
use crate::running::{configure, printed, wait_for, watch, watch_with};

const CONFIG: &str = "interval = \"1s\"\nsettle = \"0\"\n";

/// Mirrors `home`, with the spare `spare.img`, and `needy`, with none, of one group.
fn two(scratch: &Scratch) -> [UpVolume<'_>; 2] {
    scratch.sparse("spare.img", 16 * MIB);
    ["home", "needy"].map(|name| {
        let [a, b] = ["a", "b"].map(|member| format!("{name}-{member}.img"));
        scratch.sparse(&a, 16 * MIB);
        scratch.sparse(&b, 16 * MIB);
        let spare: &[&str] = if name == "home" { &["--spare", "spare.img"] } else { &[] };
        let create = ["create", name, "--level", "raid1", "--bitmap", "64K", "--assume-clean"];
        scratch.run(&[&create[..], spare, &[&a, &b]].concat()).ok();
        let file = scratch.config_file(name);
        let record = std::fs::read_to_string(&file).expect("a record");
        std::fs::write(&file, format!("spare-group = \"g\"\n{record}")).expect("a record");
        UpVolume::start(scratch, name, &["--attach", "none"])
            .unwrap_or_else(|output| panic!("{output}"))
    })
}

/// The state of a member of a volume's only array; none if it is none of it.
fn state(volume: &UpVolume<'_>, member: &Path) -> Option<String> {
    let status = volume.status();
    let members = status["arrays"][0]["members"].as_array().expect("members");
    let member = members.iter().find(|one| one["member"] == *member.display().to_string())?;
    member["state"].as_str().map(ToOwned::to_owned)
}

#[test]
fn a_spare_moves_to_the_volume_of_its_group_that_lost_a_member() {
    let scratch = Scratch::new();
    let config = configure(&scratch, CONFIG);
    let [home, needy] = two(&scratch);
    let spare = scratch.join("spare.img");
    let monitor = watch(&scratch, &config, "monitor.log");
    wait_for(&monitor, "NewArray", "needy");
    scratch.run(&["member", "fail", "needy", "needy-a.img"]).ok();
    let moved = wait_for(&monitor, "MoveSpare", "needy");
    assert_eq!(moved["member"], *spare.display().to_string());
    assert_eq!(moved["what"], format!("{} was a spare of home home", spare.display()));
    wait_for(&monitor, "WellAgain", "needy");
    assert_eq!(state(&needy, &spare).as_deref(), Some("in_sync"));
    assert_eq!(state(&home, &spare), None);
    // The next failure finds no spare, and none is taken from an array without one.
    scratch.run(&["member", "fail", "needy", "needy-b.img"]).ok();
    wait_until("the second failure", || {
        printed(&monitor).iter().filter(|one| one["event"] == "Fail").count() == 2
    });
    let _later = scratch.up("ram(1M)", &["--name", "later", "--attach", "none"]);
    wait_for(&monitor, "NewArray", "later");
    let of = |event: &str| printed(&monitor).iter().filter(|one| one["event"] == event).count();
    assert_eq!((of("MoveSpare"), of("MoveSpareFailed")), (1, 0));
    let members = home.status()["members"].as_array().map(Vec::len);
    assert_eq!(members, Some(2));
    monitor.stop();
    // The records know of it: both come up with what they have now.
    for (name, has) in [("home", false), ("needy", true)] {
        let record = std::fs::read_to_string(scratch.config_file(name)).expect("a record");
        let stack = record.lines().find(|line| line.starts_with("stack = ")).expect("a stack");
        assert_eq!(stack.contains("spare.img"), has, "{stack}");
    }
    home.down();
    needy.down();
    for name in ["home", "needy"] {
        let options: &[&str] = &["--attach", "none", "--degraded"];
        let up =
            UpVolume::start(&scratch, name, options).unwrap_or_else(|output| panic!("{output}"));
        let is_needy = name == "needy";
        assert_eq!(state(&up, &spare).is_some(), is_needy);
        up.down();
    }
}

#[test]
fn no_spare_moves_if_nobody_is_to_share() {
    let scratch = Scratch::new();
    let config = configure(&scratch, CONFIG);
    let [home, needy] = two(&scratch);
    let spare = scratch.join("spare.img");
    let monitor = watch_with(&scratch, &config, "monitor.log", &["--no-sharing"]);
    wait_for(&monitor, "NewArray", "needy");
    scratch.run(&["member", "fail", "needy", "needy-a.img"]).ok();
    wait_for(&monitor, "Fail", "needy");
    // Two looks later: one that sees what is new comes after one in which a move would have begun.
    for name in ["later", "last"] {
        let up = scratch.up("ram(1M)", &["--name", name, "--attach", "none"]);
        wait_for(&monitor, "NewArray", name);
        up.down();
    }
    assert_eq!(state(&home, &spare).as_deref(), Some("spare"));
    assert!(!monitor.text().contains("goes to"), "{}", monitor.text());
    monitor.stop();
    home.down();
    needy.down();
}

#[test]
fn a_spare_that_no_array_takes_is_told_of_and_placed_when_it_can_be() {
    let scratch = Scratch::new();
    let config = configure(&scratch, CONFIG);
    let [home, needy] = two(&scratch);
    let spare = scratch.join("spare.img");
    // The spare is encrypted meanwhile, so no array may overwrite it.
    scratch.patch("spare.img", 0, b"LUKS\xba\xbe\x00\x02");
    let monitor = watch(&scratch, &config, "monitor.log");
    wait_for(&monitor, "NewArray", "needy");
    scratch.run(&["member", "fail", "needy", "needy-a.img"]).ok();
    let failed = wait_for(&monitor, "MoveSpareFailed", "needy");
    let what = failed["what"].as_str().expect("a text");
    assert!(what.contains("LUKS") && what.contains("does not take it back"), "{what}");
    let next = format!("`braid member add needy {spare}`", spare = spare.display());
    assert!(failed["next"].as_str().is_some_and(|text| text.contains(&next)), "{failed}");
    assert_eq!((state(&home, &spare), state(&needy, &spare)), (None, None));
    assert_eq!(scratch.read("spare.img")[..6], *b"LUKS\xba\xbe", "nothing of it is overwritten");
    // A restarted monitor knows that the spare is in no array.
    monitor.stop();
    scratch.patch("spare.img", 0, &[0; 8]);
    let monitor = watch(&scratch, &config, "monitor2.log");
    wait_for(&monitor, "MoveSpare", "needy");
    wait_until("its recovery", || state(&needy, &spare).as_deref() == Some("in_sync"));
    wait_until("the cause's end", || {
        printed(&monitor).iter().any(|one| one["ended"] == "MoveSpareFailed")
    });
    monitor.stop();
    home.down();
    needy.down();
}

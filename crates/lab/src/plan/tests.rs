use super::*;
use crate::preset::{Choices, Preset, quick_campaign};

#[test]
fn quick_takes_about_a_minute_and_says_what_it_destroys() {
    let subjects = [("stripe".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
    let plan = plan_campaign(&quick_campaign("a.img", &subjects).unwrap());
    assert!(plan.duration < Duration::from_secs(90), "{:?}", plan.duration);
    assert_eq!(plan.overwrites, ["a.img", "b.img"]);
    // Single: 4 kinds of writes, 3 times a second each; the stripe writes to both members.
    assert_eq!(plan.written["a.img"].seconds, 24.0);
    assert_eq!(plan.written["b.img"].seconds, 12.0);
    // Filled once: wholly as a single, by half as a member.
    assert_eq!(plan.written["a.img"].bytes, (256 << 20) as f64 * 1.5);
    let text = render_plan(&plan);
    for part in [
        "48 trials",
        "--destroy a.img --destroy b.img",
        "seed 42",
        "(baseline)",
        "random write 4K",
        "b.img: 128 MiB, and as much as it takes in 12 s",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn what_is_impossible_is_said_before_it_starts() {
    let preset = Preset::find("cruzer-6x").unwrap();
    let choices = Choices {
        modelled: true,
        members: vec![("stick6".into(), "model(usb-flash, size=2G)".into())],
        ..Choices::default()
    };
    let mut campaign = preset.campaign(&choices).unwrap();
    campaign.members.truncate(4);
    let text = render_plan(&plan_campaign(&campaign));
    assert!(text.contains("impossible, and left out"), "{text}");
    assert!(text.contains("it needs 6 members and there are 4"), "{text}");
}

#[test]
fn times_are_readable() {
    assert_eq!(minutes(Duration::from_secs(69)), "69 s");
    assert_eq!(minutes(Duration::from_secs(121)), "3 min");
    assert_eq!(minutes(Duration::from_secs(9000)), "2.5 h");
}

use super::*;
use crate::matrix::Planned;

fn choices() -> Choices {
    Choices {
        baseline: Some("a.img".into()),
        subjects: vec![("stripe".into(), "raid0(a.img, b.img)".into())],
        ..Choices::default()
    }
}

/// Returns a preset with all that it needs.
fn whole(preset: &Preset) -> Campaign {
    let choices = match preset.compares_stacks() {
        true => choices(),
        false => Choices { modelled: !preset.modelled.is_empty(), ..Choices::default() },
    };
    preset.campaign(&choices).unwrap()
}

#[test]
fn every_preset_makes_a_campaign_that_can_run() {
    for preset in PRESETS {
        let campaign = whole(preset);
        assert_eq!(campaign.name, preset.name);
        assert_eq!(Preset::find(preset.name).unwrap().name, preset.name);
        assert!(!Planned::of(&campaign).trials.is_empty());
        for cell in Planned::of(&campaign).cells {
            // A single member and a stripe survive no loss.
            let is_healthy = cell.workload.setup.health == crate::campaign::Health::Healthy;
            let expected = cell.impossible.is_some() && !is_healthy;
            assert_eq!(cell.impossible.is_some(), expected, "{}: {}", preset.name, cell.workload);
        }
    }
}

#[test]
fn every_preset_can_be_scaled_down() {
    for preset in PRESETS {
        let scaled = Choices { scale: Some(0.001), ..Choices::default() };
        let campaign = scaled.apply(whole(preset)).unwrap();
        assert!(campaign.runtime_s <= 1.0, "{}", preset.name);
        assert_eq!(Planned::of(&campaign).cells.len(), Planned::of(&whole(preset)).cells.len());
    }
}

#[test]
fn every_modelled_member_is_a_member() {
    for preset in PRESETS {
        let parsed = parse_unchecked(preset.toml, preset.name).unwrap();
        let members: Vec<&str> = parsed.members.iter().map(|m| m.name.as_str()).collect();
        let modelled: Vec<&str> = preset.modelled.iter().map(|(name, _)| *name).collect();
        assert_eq!(members, modelled, "{}", preset.name);
    }
}

#[test]
fn members_without_a_device_are_asked_for() {
    let preset = Preset::find("two-disk-levels").unwrap();
    let one = Choices { members: vec![("disk1".into(), "a.img".into())], ..Choices::default() };
    let error = preset.campaign(&one).unwrap_err().to_string();
    assert!(error.contains("the device of disk2 is not named"), "{error}");
    assert!(error.contains("--member disk2=DEVICE, or take --modelled"), "{error}");
    let wrong = Choices { members: vec![("dsk1".into(), "a.img".into())], ..one };
    let error = preset.campaign(&wrong).unwrap_err().to_string();
    assert!(error.contains("did you mean \"disk1\"?"), "{error}");
}

/// The members of a printed preset have no devices until they are named.
#[test]
fn members_of_a_file_are_named_on_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("printed.toml");
    std::fs::write(&path, Preset::find("two-disk-levels").unwrap().toml).unwrap();
    let named = |names: &[&str]| {
        let members = names.iter().map(|name| ((*name).to_owned(), format!("{name}.img")));
        read_chosen(&path, &Choices { members: members.collect(), ..Choices::default() })
    };
    let campaign = named(&["disk1", "disk2"]).unwrap();
    assert_eq!(campaign.members[1].device, "disk2.img");
    let error = named(&["disk1"]).unwrap_err().to_string();
    assert!(error.contains("member \"disk2\" has no device"), "{error}");
    let error = named(&["disk1", "dsk2"]).unwrap_err().to_string();
    assert!(error.contains("did you mean \"disk2\"?"), "{error}");
}

#[test]
fn named_devices_win_over_models() {
    let preset = Preset::find("rally2").unwrap();
    let one = Choices {
        members: vec![("stick1".into(), "/dev/sdb".into())],
        modelled: true,
        ..Choices::default()
    };
    let campaign = preset.campaign(&one).unwrap();
    assert_eq!(campaign.members[0].device, "/dev/sdb");
    assert!(campaign.members[1].device.starts_with("model("));
}

#[test]
fn the_kernel_stands_in_for_braid() {
    let preset = Preset::find("two-disk-levels").unwrap();
    let members = [("disk1", "/dev/sdb"), ("disk2", "/dev/sdc")];
    let members = members.map(|(name, device)| (name.to_owned(), device.to_owned())).to_vec();
    let campaign =
        preset.campaign(&Choices { members, kernel: true, ..Choices::default() }).unwrap();
    let subjects = campaign.expand();
    assert_eq!(subjects[0].source, Source::Path("/dev/sdb".into()));
    assert_eq!(subjects[4].source, Source::Kernel("raid1(/dev/sdb, /dev/sdc)".into()));
}

/// A flag without effect would suggest an effect.
#[test]
fn flags_that_a_preset_has_no_use_for_are_refused() {
    let disks = [("disk1", "/dev/sdb"), ("disk2", "ram(1G)")];
    let disks = disks.map(|(name, device)| (name.to_owned(), device.to_owned())).to_vec();
    let (modelled, kernel) = (true, true);
    let cases = [
        ("quick", Choices { modelled, ..choices() }, "--modelled: it has no members", "--baseline"),
        ("quick", Choices { kernel, ..choices() }, "--kernel: it has no members", "--subject md="),
        (
            "rapiddisk",
            Choices { modelled, ..Choices::default() },
            "--modelled:",
            "leave --modelled",
        ),
        ("rapiddisk", Choices { kernel, ..Choices::default() }, "--kernel:", "leave --kernel out"),
        (
            "two-disk-levels",
            Choices { modelled, kernel, ..Choices::default() },
            "--kernel and --modelled",
            "--member disk1=DEVICE --member disk2=DEVICE",
        ),
        (
            "two-disk-levels",
            Choices { kernel, members: disks, ..Choices::default() },
            "disk2 is ram(1G)",
            "give --member disk2=PATH",
        ),
    ];
    for (name, choices, reason, next) in cases {
        let error = Preset::find(name).unwrap().campaign(&choices).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(next), "{name}: {error}");
    }
}

#[test]
fn a_subject_may_be_named_single() {
    let subjects = [("single".to_owned(), "b.img".to_owned())];
    let campaign = quick_campaign("a.img", &subjects).unwrap();
    assert_eq!(campaign.expand()[0].name, "baseline");
}

#[test]
fn without_a_baseline_there_is_nothing_to_measure() {
    let error = PRESETS[0].campaign(&Choices::default()).unwrap_err().to_string();
    assert!(error.contains("--baseline STACK"), "{error}");
    let both = Choices { modelled: true, ..choices() };
    let error = Preset::find("rally2").unwrap().campaign(&both).unwrap_err().to_string();
    assert!(error.contains("it has its subjects"), "{error}");
}

#[test]
fn changes_are_checked() {
    let change = Choices { repetitions: Some(5), ..choices() };
    assert_eq!(PRESETS[0].campaign(&change).unwrap().repetitions, 5);
    for wrong in [
        Choices { runtime_s: Some(0.0), ..choices() },
        Choices { scale: Some(0.0), ..choices() },
        Choices { scale: Some(f64::NAN), ..choices() },
        Choices { only: vec!["nothing".into()], ..choices() },
    ] {
        assert!(PRESETS[0].campaign(&wrong).is_err(), "{wrong:?}");
    }
}

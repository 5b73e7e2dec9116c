//! A fault is told with the file, the entry and the key.

use braid_reproduce::{CalibUse, Param, Role, Study, Unit, built_in, parse, texts};

const GOOD: &str = r#"
[source]
title = "One of each"
hosts = ["a host", "another"]
[[device]]
name = "stick"
kind = "usb-flash"
count = 2
advertised = { max_mb_per_s = 28.0 }
[[device]]
name = "mean"
kind = "usb-flash"
derived = true
[[array]]
name = "pair"
level = "raid0 (called striped)"
members = ["stick", "stick"]
chunk_kib = 64
[[measurement]]
id = "one"
subject = "stick"
subject_kind = "device"
tool = "dd-read"
params = { bs = 4096, count = 10, sync = false, fs = "xfs", share = 0.5 }
metric = "mb_per_s"
norm_value = 20
norm_low = 19
norm_high = 21
norm_unit = "B/s"
role = "calibration"
calib_use = "check"
note = "a note"
[[measurement]]
id = "two"
subject = "pair"
subject_kind = "array"
tool = "seeker"
metric = "ms"
norm_value = 0.5
norm_unit = "s"
role = "prediction"
[[probe]]
id = "three"
subject = "pair"
tool = "seeker"
metric = "iops"
params = { bs = 512 }
[[claim]]
id = "c"
statement = "two is less"
predicate = "f('two') < f('one')"
threshold = "ours"
"#;

fn good() -> Study {
    parse("folder/good.toml", GOOD).expect("nothing is wrong with it")
}

#[test]
fn a_file_is_read() {
    let study = good();
    assert_eq!((study.name.as_str(), study.title.as_str()), ("good", "One of each"));
    assert_eq!(study.facts.text("hosts.1"), Some("another"));
    let stick = study.device("stick").expect("a device");
    assert_eq!((stick.facts.count("count"), stick.is_derived), (Some(2), false));
    assert_eq!(stick.facts.number("advertised.max_mb_per_s"), Some(28.0));
    let pair = study.array("pair").expect("an array");
    assert_eq!((pair.level.as_str(), pair.members.len()), ("raid0", 2));
    assert_eq!(pair.facts.number("chunk_kib"), Some(64.0));
    let one = study.row("one").expect("a row");
    assert_eq!((one.published, one.low, one.high), (20.0, 19.0, 21.0));
    assert_eq!(one.role, Role::Calibration(CalibUse::Check));
    let params = &one.asked.params;
    assert_eq!((params.bytes(), params.flag("sync")), (Some(40960.0), Some(false)));
    assert_eq!((params.text("fs"), params.get("share")), (Some("xfs"), Some(&Param::Float(0.5))));
    assert_eq!(params.iter().count(), 5);
    // A figure without a range is exact, and a probe's unit follows from its metric.
    let two = study.row("two").expect("a row");
    assert_eq!((two.low, two.high, two.role), (0.5, 0.5, Role::Prediction));
    assert_eq!(study.asked("three").map(|asked| asked.unit), Some(Unit::PerSecond));
    assert_eq!(study.calibration().count(), 1);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let instead = |line: &'static str, new: &'static str| (line, new.to_owned());
    for ((old, new), says) in [
        (instead("[[probe]]", "[[probe"), "bad.toml: not TOML: "),
        (instead("[[claim]]", "[claim]"), "bad.toml: [[claim]] is wanted as a list"),
        (instead("id = \"one\"", ""), "bad.toml: measurement 1: id: a text is wanted"),
        (instead("kind = \"usb-flash\"\ncount = 2", ""), "device \"stick\": kind: missing"),
        (instead("derived = true", "derived = 1"), "device \"mean\": derived: true or false"),
        (
            instead("\"stick\", \"stick\"", "\"stick\", \"stock\""),
            "array \"pair\": members: \"stock\" is not a device",
        ),
        (
            instead("\"stick\", \"stick\"", "\"stick\", \"mean\""),
            "array \"pair\": members: \"mean\" is not a device",
        ),
        (instead("\"stick\", \"stick\"", ""), "array \"pair\": members: a list of names"),
        (instead("\"stick\", \"stick\"", "1"), "array \"pair\": members: a list of names"),
        (instead("level = \"raid0 (called striped)\"", ""), "array \"pair\": level: missing"),
        (
            instead("name = \"pair\"", "name = \"stick\""),
            "array \"stick\": name: there is another one",
        ),
        (instead("id = \"two\"", "id = \"one\""), "measurement \"one\": id: there is another one"),
        (instead("id = \"three\"", "id = \"one\""), "probe \"one\": id: there is another one"),
        (
            instead("subject = \"stick\"", "subject = \"bus\""),
            "measurement \"one\": subject: \"bus\" is neither",
        ),
        (
            instead("subject_kind = \"device\"", "subject_kind = \"array\""),
            "measurement \"one\": subject_kind: \"stick\" is a device",
        ),
        (
            instead("subject_kind = \"array\"", "subject_kind = \"device\""),
            "measurement \"two\": subject_kind: \"pair\" is no device",
        ),
        (instead("tool = \"dd-read\"", ""), "measurement \"one\": tool: missing"),
        (instead("tool = \"dd-read\"", "tool = 1"), "measurement \"one\": tool: a text is wanted"),
        (instead("metric = \"ms\"", ""), "measurement \"two\": metric: missing"),
        (
            instead("params = { bs = 512 }", "params = 512"),
            "probe \"three\": params: a table is wanted",
        ),
        (instead("norm_value = 20\n", ""), "measurement \"one\": norm_value: missing"),
        (
            instead("norm_value = 20", "norm_value = '20'"),
            "measurement \"one\": norm_value: a number",
        ),
        (
            instead("norm_value = 20", "norm_value = nan"),
            "measurement \"one\": norm_value: a number",
        ),
        (
            instead("norm_value = 0.5", "norm_value = 0"),
            "measurement \"two\": norm_value: 0 is not above 0",
        ),
        (
            instead("norm_value = 20", "norm_value = 22"),
            "measurement \"one\": norm_value: 22 is outside",
        ),
        (
            instead("norm_low = 19", "norm_low = 22"),
            "measurement \"one\": norm_low: 22 is above norm_high, 21",
        ),
        (
            instead("calib_use = \"check\"", "held_out = true"),
            "measurement \"one\": held_out: a row of role \"calibration\" is not kept from the models",
        ),
        (instead("calib_use = \"check\"", "held_out = 1"), "held_out: true or false is wanted"),
        (instead("norm_unit = \"B/s\"", ""), "measurement \"one\": norm_unit: missing"),
        (instead("role = \"calibration\"\n", ""), "measurement \"one\": role: missing"),
        (
            instead("calib_use = \"check\"", "calib_use = \"so-so\""),
            "measurement \"one\": calib_use: \"so-so\" is none of input, check, avoid",
        ),
        (
            instead("metric = \"iops\"", "metric = \"smell\""),
            "probe \"three\": metric: \"smell\" has no known unit",
        ),
        (instead("predicate = \"f('two') < f('one')\"", ""), "claim \"c\": predicate: missing"),
    ] {
        assert!(GOOD.contains(old), "{old:?} is not in the file");
        let bad = GOOD.replacen(old, &new, 1);
        let error = parse("bad.toml", &bad).expect_err(says).to_string();
        assert!(error.starts_with("bad.toml: ") && error.contains(says), "{says}\n  {error}");
    }
    let claims = format!("{GOOD}\n[[claim]]\nid = \"c\"\npredicate = \"True\"");
    let error = parse("bad.toml", &claims).expect_err("two of one id").to_string();
    assert!(error.contains("claim \"c\": id: there is another one"), "{error}");
    let error =
        parse("bad.toml", "[source]\ntitle = \"x\"").expect_err("nothing in it").to_string();
    assert!(error.contains("nothing to be explained"), "{error}");
}

/// A device may be like a profile that comes with braid, but for some constants.
#[test]
fn a_device_may_have_a_profile_of_its_own() {
    let with = |profile: &str| {
        let device = format!("name = \"stick\"\nprofile = {profile}");
        parse("mine.toml", &GOOD.replacen("name = \"stick\"", &device, 1))
    };
    let profile = "{ like = \"rally2\", capacity = 4_000_000, write_rate = [6e6, \"row one\"] }";
    let study = with(profile).expect("a file");
    let own = study.device("stick").and_then(|stick| stick.profile.as_ref()).expect("a profile");
    let like = braid_model::profile("rally2").expect("it comes with braid");
    assert_eq!((own.capacity, own.constant("write_rate")), (Some(4_000_000), Some(6e6)));
    assert_eq!(own.constant("command_us"), like.constant("command_us"));
    assert!(study.devices.iter().any(|device| device.profile.is_none()));
    for (profile, says) in [
        ("1", "device \"stick\": profile: a table is wanted"),
        ("{ write_rate = [6e6, \"row\"] }", "profile.like: the name of a profile that comes with"),
        ("{ like = \"stick\" }", "profile.like: the name of a profile that comes with braid"),
        ("{ like = \"rally2\", rpm = [1, \"row\"] }", "profile: rpm is no constant of this kind"),
        ("{ like = \"rally2\", write_rate = 6e6 }", "profile: write_rate must be [number, "),
        ("{ like = \"rally2\", capacity = \"4G\" }", "profile: capacity: kind and label"),
    ] {
        let error = with(profile).expect_err(says).to_string();
        assert!(error.contains(says), "{says}\n  {error}");
    }
}

#[test]
fn built_in_files_are_complete() {
    let count = |study: &Study| (study.rows.len(), study.probes.len(), study.claims.len());
    let counted: Vec<_> =
        built_in().iter().map(|study| (study.name.clone(), count(study))).collect();
    let expected = [
        ("raid-levels-2hdd", (96, 0, 6)),
        ("rally2-raid0", (14, 1, 6)),
        ("adata-4x-raid0", (6, 0, 5)),
        ("cruzer-6x-raid0", (7, 79, 14)),
        ("rapiddisk", (34, 0, 9)),
        ("md-wiki-2disks", (10, 0, 0)),
        ("raid0-3x200gb", (3, 0, 0)),
        ("hdparm-raid1-raid5", (10, 0, 0)),
        ("verbatim-2x-raid0", (6, 0, 0)),
    ];
    assert_eq!(counted, expected.map(|(name, counts)| (name.to_owned(), counts)));
    for (name, text) in texts() {
        let path = format!("{}/src/series/{name}", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(std::fs::read_to_string(path).expect("a file"), text);
    }
}

#[test]
fn metrics_have_units() {
    for (metric, unit) in [
        ("mb_per_s", Some(Unit::BytesPerSecond)),
        ("kib_per_s", Some(Unit::BytesPerSecond)),
        ("gb_per_s", Some(Unit::BytesPerSecond)),
        ("requests_per_s", Some(Unit::PerSecond)),
        ("iops", Some(Unit::PerSecond)),
        ("seconds", Some(Unit::Seconds)),
        ("ms", Some(Unit::Seconds)),
        ("percent", None),
    ] {
        assert_eq!(Unit::of_metric(metric), unit, "{metric}");
    }
}

/// Kinds of rows and claims that others write down as well: the rest of the file is judged without them.
#[test]
fn what_is_not_judged_is_passed_over_with_its_reason() {
    for (old, new, id, why) in [
        ("norm_unit = \"B/s\"", "norm_unit = \"B\"", "one", "norm_unit \"B\" is none"),
        ("role = \"calibration\"", "role = \"guess\"", "one", "role \"guess\" is none"),
        ("metric = \"iops\"", "metric = \"iops\"\nnorm_unit = \"kg\"", "three", "norm_unit \"kg\""),
        ("f('two') < f('one')", " ", "c", "its predicate is empty"),
    ] {
        assert!(GOOD.contains(old), "{old:?} is not in the file");
        let study = parse("some.toml", &GOOD.replacen(old, new, 1)).expect("the rest of it");
        let [(passed, reason)] = study.passed_over.as_slice() else { panic!("{old}: {study:?}") };
        assert!(passed == id && reason.contains(why), "{passed}: {reason}");
        assert!(study.asked(id).is_none() && study.claims.iter().all(|claim| claim.id != id));
    }
    assert!(good().passed_over.is_empty());
}

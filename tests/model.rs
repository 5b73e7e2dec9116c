//! `braid model` and `braid advise` as a person and a script meet them.

mod common;

use std::time::{Duration, Instant};

use common::{Client, Scratch};
use serde_json::Value;

const PROFILE: &str = r#"
kind = "plain"
label = "a stick of my own"
capacity = 4000000000
[constant]
read_rate = [20e6, "measured"]
write_rate = [8e6, "measured"]
latency_us = [900, "measured"]
bus_rate = [35e6, "measured"]
"#;

const JOB: &str =
    "[global]\nioengine=libaio\ndirect=1\nbs=16k\n[one]\nrw=randread\niodepth=8\nsize=1g\n";
const TRACE: &str =
    "fio version 3 iolog\n0 d add\n0 d open\n10 d read 0 4096\n20 d write 8192 4096\n30 d close\n";

#[test]
fn profiles_are_listed_and_shown_with_their_sources() {
    let scratch = Scratch::new();
    let list = scratch.run(&["model", "list", "--json"]).ok().json();
    let profiles = list["profiles"].as_array().expect("a list");
    assert!(profiles.iter().any(|one| one["name"] == "rally2" && one["kind"] == "usb-flash"));
    let shown = scratch.run(&["model", "show", "rally2", "--json"]).ok().json();
    let constants = shown["constants"].as_array().expect("a list");
    assert!(
        constants.iter().all(|one| one["source"].as_str().is_some_and(|text| !text.is_empty()))
    );
    let text = scratch.run(&["model", "show", "usb2-ich9"]).ok();
    assert!(text.out.contains("packets_in") && text.out.contains("USB 2.0"), "{}", text.out);
}

#[test]
fn what_is_wrong_with_a_profile_is_named() {
    let scratch = Scratch::new();
    let file = scratch.join("mine.toml");
    let path = file.to_str().expect("a path");
    for (from, to, says) in [
        ("latency_us = [900, \"measured\"]", "", "latency_us is missing"),
        ("[8e6, \"measured\"]", "[-8e6, \"measured\"]", "write_rate is -8000000"),
        ("[8e6, \"measured\"]", "[8e6, \"\"]", "write_rate must be [number, \"source\"]"),
        ("plain", "floppy", "kind is \"floppy\""),
        ("bus_rate", "colour = [1, \"x\"]\nbus_rate", "colour is no constant"),
    ] {
        std::fs::write(&file, PROFILE.replace(from, to)).expect("a file");
        for args in [vec!["model", "show", path], vec!["advise", path, path, "--workload", "files"]]
        {
            scratch.run(&args).fails(2, &[says, "mine.toml"]);
        }
    }
}

/// A profile is written in one folder and used from another, by any command that serves it.
#[test]
fn a_profile_of_a_file_is_a_member() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("profiles")).expect("a folder");
    let slow = PROFILE.replace("[900,", "[60e3,");
    std::fs::write(scratch.join("profiles/my stick.toml"), slow).expect("a file");
    let [one, other] =
        ["", "./"].map(|at| format!("model(\"{at}profiles/my stick.toml\", size=1M)"));
    let stack = format!("raid1({one}, {other})");
    let takes_its_time = |mut client: Client| {
        client.write(0, &[7; 4096], false).expect("a write");
        let begun = Instant::now();
        assert_eq!(client.read(4096, 512).expect("a read"), [0; 512]);
        assert!(begun.elapsed() >= Duration::from_millis(60), "{:?}", begun.elapsed());
    };
    takes_its_time(scratch.serve(&stack, &[]).client());
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    takes_its_time(volume.client());
    volume.down();
    let kept = std::fs::read_to_string(scratch.config_file("v")).expect("a record");
    let absolute = scratch.join("profiles/my stick.toml");
    assert_eq!(kept.matches(absolute.to_str().expect("a path")).count(), 2, "{kept}");
    // Its record is all that it needs, wherever it is brought up from.
    let tool = scratch.braid().args(["up", "v"]).folder(&scratch.join("profiles"));
    tool.run().ok();
    scratch.run(&["down", "v"]).ok();
    std::fs::rename(&absolute, scratch.join("elsewhere.toml")).expect("a file");
    scratch.run(&["up", "v"]).fails(2, &["my stick.toml cannot be read", "next: "]);
    scratch.run(&["status", "v"]).fails(1, &["no volume called v is up"]);
}

#[test]
fn advice_is_a_sentence_a_short_table_and_a_line_to_type() {
    let scratch = Scratch::new();
    let output =
        scratch.run(&["advise", "cruzer-titanium*6@usb2:0", "--workload", "seq-read"]).ok();
    let text = output.out;
    assert!(
        text.contains("Take raid5 of 3 × cruzer-titanium") && text.contains("predicted"),
        "{text}"
    );
    assert!(text.contains("braid create NAME --level raid5 --chunk"), "{text}");
    assert!(text.contains("none is measured"), "{text}");
    // What is as fast and survives a loss is taken; if only throughput counts, it is named.
    let says = |need: &str, parts: [&str; 2]| {
        let of = ["advise", "sata-7200*2", "--workload", "files", "--need", need];
        let text = scratch.run(&of).ok().out;
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let [at, after] = parts.map(|part| words.find(part).unwrap_or_else(|| panic!("{text}")));
        assert!(at < after, "{text}");
    };
    says("latency", ["Take raid1 of", "Latency: p99"]);
    says("balanced", ["Take raid1 of", "Without redundancy, raid0 of"]);
    says("throughput", ["Take raid0 of", "may fail: the two differ by less than predictions"]);
    says(
        "capacity",
        ["Take raid1 of", "room for 2.0 TB (raid0 × 2); that one member may fail costs 1.0 TB"],
    );
    // Kinds are told apart, and what is not worth a row is left out.
    let kinds = ["advise", "rally2*2", "sata-7200*2", "--workload", "files"];
    let kinds = scratch.run(&kinds).ok();
    for row in [" sata-7200 alone ", " raid1 × 2 sata-7200 "] {
        assert!(kinds.err.is_empty() && kinds.out.contains(row), "{kinds}");
    }
    let two = scratch.run(&["advise", "rally2*2", "--workload", "seq-read"]).ok().out;
    assert!(two.contains(" alone ") && !two.contains("linear"), "{two}");
    // The size that a profile has is not overridden.
    let words =
        ["rally2*2", "--size", "4T", "--workload", "files", "--need", "redundancy", "--json"];
    let advice = scratch.run(&[&["advise"], &words[..]].concat()).ok();
    assert!(advice.err.contains("--size is not used"), "{advice}");
    let advice = advice.json();
    let capacity = advice["layouts"][0]["capacity"].as_u64().expect("bytes");
    assert!(capacity < 4_000_000_000, "{capacity}");
    let rows = text.lines().filter(|line| line.contains("usb2:0 is at its limit")).count();
    assert!(rows <= 11, "{text}");
}

#[test]
fn workloads_are_names_jobs_and_traces_and_needs_rank_them() {
    let scratch = Scratch::new();
    let paths =
        [("mine.toml", PROFILE), ("job.fio", JOB), ("trace.log", TRACE)].map(|(name, text)| {
            let path = scratch.join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("a path").to_owned()
        });
    let [profile, job, trace] = &paths;
    let four = format!("{profile}*4");
    for workload in [job, trace, "database"] {
        for need in ["balanced", "capacity", "redundancy", "throughput", "latency", "price"] {
            let price = format!("{profile}=20EUR");
            let args = ["advise", &four, "--workload", workload, "--need", need, "--price", &price];
            let advice = scratch.run(&[&args[..], &["--json"]].concat()).ok().json();
            let layouts = advice["layouts"].as_array().expect("layouts");
            assert!(layouts[0]["predicted_bytes_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
            let capacity = |one: &Value| one["capacity"].as_u64().expect("bytes");
            match need {
                "redundancy" => {
                    assert!(layouts.iter().all(|one| one["members_that_may_fail"] != 0))
                }
                "capacity" => {
                    let is_safe = |one: &&Value| one["members_that_may_fail"] != 0;
                    let most = layouts.iter().filter(is_safe).map(capacity).max();
                    assert_eq!(Some(capacity(&layouts[0])), most);
                }
                _ => {}
            }
        }
    }
}

/// The question of the fifth study: is a striped set of sticks worth its price?
#[test]
fn prices_and_watts_make_rates_of_their_own() {
    let scratch = Scratch::new();
    let advise = |words: &[&str], costs: &[&str]| {
        let words = [&["advise"], words, &["--workload", "seq-read"], costs].concat();
        scratch.run(&words)
    };
    let six = ["cruzer-titanium*6@usb2:0", "--need", "price"];
    let costs = ["--price", "cruzer-titanium=20USD", "--watts", "cruzer-titanium=0.5W"];
    let advice = advise(&six, &[&costs[..], &["--json"]].concat()).ok().json();
    assert_eq!(advice["currency"], "USD");
    let layouts = advice["layouts"].as_array().expect("layouts");
    let number =
        |one: &Value, key: &str| one[key].as_f64().unwrap_or_else(|| panic!("{key}: {one}"));
    for one in layouts {
        let count = one["members"].as_array().expect("members").len() as f64;
        let (rate, tb) = (number(one, "predicted_bytes_per_s"), number(one, "capacity") / 1e12);
        let is = |key: &str, expected: f64| {
            assert!((number(one, key) / expected - 1.0).abs() < 1e-9, "{key}: {expected}: {one}");
        };
        is("price", 20.0 * count);
        is("bytes_per_s_per_price", rate / (20.0 * count));
        is("price_per_tb", 20.0 * count / tb);
        is("watts", 0.5 * count);
        is("bytes_per_s_per_watt", rate / (0.5 * count));
    }
    // Two fill the bus nearly: more of them cost more than they bring.
    let worth = |one: &Value| number(one, "bytes_per_s_per_price");
    let most = layouts.iter().map(worth).fold(0.0, f64::max);
    let mut bare = layouts.iter().filter(|one| one["members_that_may_fail"] == 0);
    let bare = bare.next().expect("a layout without redundancy");
    assert!(worth(bare) > 0.99 * most, "{advice}");
    assert_eq!(bare["members"].as_array().map(Vec::len), Some(2), "{advice}");
    // Predictions of sticks are off by more than the price of redundancy.
    let low = number(bare, "predicted_low") / number(bare, "predicted_bytes_per_s");
    assert!(worth(&layouts[0]) >= low * worth(bare), "{advice}");
    assert_eq!(layouts[0]["members_that_may_fail"], 1, "{advice}");
    let text = advise(&six, &costs).ok().out;
    for part in ["It costs 60 USD: ", " per USD, 14600 USD per TB. It draws 1.5 W: ", "MB/s per W"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    // The price decides between kinds: a disk for the price of a stick, and one for a hundred times that.
    for (disk, takes) in [("20", "sata-7200"), ("2000", "rally2")] {
        let disk = format!("sata-7200={disk}");
        let costs = ["--price", "rally2=20", "--price", &disk, "--need", "price", "--json"];
        let advice = advise(&["rally2*2", "sata-7200*2"], &costs).ok().json();
        let members = advice["layouts"][0]["members"].to_string();
        assert!(members.contains(takes), "{members}");
        assert!(advice["answer"].to_string().contains(" per unit of price, "), "{advice}");
    }
    // A device has the price of its name, or of its profile.
    scratch.file("a.img", 20 << 20, 1);
    let device = ["./a.img=rally2", "rally2"];
    let priced =
        advise(&device, &["--price", "rally2=2", "--price", "a.img=3", "--json"]).ok().json();
    let mut both = priced["layouts"].as_array().expect("layouts").iter();
    let both = both.find(|one| one["level"] == "raid1").expect("a mirror");
    assert_eq!(both["price"].as_f64(), Some(5.0));
    for (costs, says) in [
        (&["--need", "price"][..], "rally2 has no --price, which each member needs"),
        (&["--price", "rally2=5"], "cruzer-titanium has no --price"),
        (&["--price", "other=5"], "none of the members is called so"),
        (&["--price", "rally2=5", "--price", "rally2=6"], "given twice"),
        (
            &["--price", "rally2=5EUR", "--price", "cruzer-titanium=6"],
            "is in \"\", and another in \"EUR\"",
        ),
        (&["--price", "rally2"], "there is no ="),
        (&["--price", "rally2=-5"], "a number above 0"),
        (&["--price", "rally2=1,200"], "a number above 0"),
        (&["--price", "rally2=5 EUR each"], "a number above 0"),
        (&["--price", "rally2=0"], "a number above 0"),
        (&["--watts", "rally2=5kW"], "not in W"),
    ] {
        let output = advise(&["rally2", "cruzer-titanium"], costs);
        output.fails(2, &[says]);
    }
}

#[test]
fn what_cannot_be_advised_says_why() {
    let scratch = Scratch::new();
    let broken = scratch.join("broken.fio");
    std::fs::write(&broken, "[one]\nrw=sideways\n").expect("a file");
    let image = scratch.sparse("disk.img", 1 << 20);
    let page = scratch.join("page.html");
    std::fs::write(&page, "mine").expect("a file");
    let [broken, image, page] = [&broken, &image, &page].map(|path| path.to_str().expect("a path"));
    for (args, code, says) in [
        (vec!["advise", "nothing", "--workload", "files"], 2, "neither a profile nor a file"),
        (vec!["advise", "rally2", "--workload", "nothing"], 2, "neither a workload nor a file"),
        (vec!["advise", "rally2*0", "--workload", "files"], 2, "no count from 1 to 12"),
        (vec!["advise", "rally2*12", "rally2", "--workload", "files"], 2, "at most 12"),
        (vec!["advise", "host-2007", "--workload", "files"], 2, "no device"),
        (vec!["advise", "ram*2", "--workload", "files"], 2, "has no capacity"),
        (vec!["advise", "rally2", "--workload", broken], 2, "line 2"),
        (vec!["advise", image, "--workload", "files"], 3, "are holes"),
        (vec!["advise", "rally2", "--workload", "files", "--need", "redundancy"], 1, "survives"),
        (vec!["advise", "rally2", "--workload", "files", "--html", page], 3, "is there already"),
    ] {
        scratch.run(&args).fails(code, &[says]);
    }
    assert_eq!(std::fs::read_to_string(page).expect("a file"), "mine");
}

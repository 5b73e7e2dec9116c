use super::*;
use crate::matrix::{Planned, parse_campaign};

const GOOD: &str = r#"
name = "stripe"

[[member]]
name = "a"
device = "a.img"

[[member]]
name = "b"
device = "b.img"

[[subject]]
name = "single"
stack = "{a}"
baseline = true

[[subject]]
name = "two"
stack = "raid0(chunk={chunk}, {members})"
chunk = ["64K", "1M"]

[[job]]
pattern = ["seq", "rand"]
op = "read"
block_size = ["1M", 4096]
"#;

fn error_of(text: &str) -> String {
    parse_campaign(text, "test.toml").expect_err("must be refused").to_string()
}

#[test]
fn a_good_campaign_has_its_defaults_and_survives_a_round_trip() {
    let campaign = parse_campaign(GOOD, "test.toml").unwrap();
    assert_eq!((campaign.repetitions, campaign.seed), (3, None));
    assert_eq!(campaign.jobs[0].tool, "fio");
    assert_eq!(
        campaign.jobs[0].settings["block_size"],
        [Value::Size(ByteSize(1 << 20)), Value::Size(ByteSize(4096))]
    );
    let again = parse_campaign(&render_campaign(&campaign).unwrap(), "copy").unwrap();
    assert_eq!(again, campaign);
}

#[test]
fn everything_that_can_be_written_survives_a_round_trip() {
    let text = format!(
        "{GOOD}\n[[job]]\ntool = \"dd\"\nop = \"write\"\ndirect = true\nsize = \"64M\"\nprocesses = [1, 4]\n\
         filesystem = [\"ext4\", \"xfs\"]\nmkfs = \"-E lazy_itable_init=0\"\nmount = [\"\", \"sync\"]\n\
         readahead = [\"128K\", \"1M\"]\nhealth = [\"healthy\", \"degraded\"]\ndrop_caches = false\n\
         subjects = [\"two*\"]\n\
         [[subject]]\nname = \"k\"\nkernel = \"raid0({{members}})\"\nmembers = 2\nbuses = 1\norder = \"grouped\"\n\
         [[subject]]\nname = \"z\"\nzram = \"1G\"\n[[subject]]\nname = \"d\"\ndirectory = \"/srv\"\n"
    );
    let campaign = parse_campaign(&text, "test.toml").unwrap();
    let written = render_campaign(&campaign).unwrap();
    assert_eq!(parse_campaign(&written, "copy").unwrap(), campaign, "{written}");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest_that_is_known() {
    let cases = [
        (
            GOOD.replace("name = \"stripe\"", "name = \"stripe\"\nrepetition = 5"),
            "repetition",
            "repetitions",
        ),
        (GOOD.replace("op =", "blocksize = \"4K\"\nop ="), "blocksize", "block_size"),
        (GOOD.replace("op =", "iodpeth = 4\nop ="), "iodpeth", "iodepth"),
        (GOOD.replace("op =", "proceses = 4\nop ="), "proceses", "processes"),
        (GOOD.replace("baseline", "baselin"), "baselin", "baseline"),
        (GOOD.replacen("device", "devise", 1), "devise", "device"),
        (GOOD.replace("op =", "tool = \"bonie\"\nop ="), "bonie", "bonnie"),
    ];
    for (text, wrong, near) in cases {
        let error = error_of(&text);
        assert!(error.contains("test.toml") && error.contains(wrong), "{error}");
        assert!(error.contains(&format!("did you mean {near:?}?")), "{error}");
    }
}

#[test]
fn each_fault_names_its_remedy() {
    let cases = [
        (GOOD.replace("baseline = true", ""), "baseline = true"),
        (GOOD.replace("\"two\"", "\"single\""), "named \"single"),
        (GOOD.replace("op = \"read\"", "op = \"reed\""), "did you mean \"read\"?"),
        (GOOD.replace("op = \"read\"", "op = []"), "op is an empty list"),
        (GOOD.replace("4096", "1000"), "multiple of 512"),
        (GOOD.replace("4096", "\"4Q\""), "take a size"),
        (GOOD.replace("op =", "iodepth = 0\nop ="), "take 1 to"),
        (GOOD.replace("op =", "filesystem = \"ext5\"\nop ="), "ext4"),
        (GOOD.replace("stack = \"{a}\"", "stack = \"a.img\"\npath = \"b\""), "exactly one of"),
        (GOOD.replace("{a}", "{c}"), "{c} is neither a member"),
        (GOOD.replacen("[[member]]", "repetitions = 0\n[[member]]", 1), "1 to 1000"),
        (GOOD.replacen("[[member]]", "seed = -1\n[[member]]", 1), "seed"),
        (GOOD.replacen("[[member]]", "runtime_s = nan\n[[member]]", 1), "runtime_s"),
        (GOOD.replacen("[[member]]", "rest_s = -1.0\n[[member]]", 1), "rest_s"),
        (GOOD.replacen("[[member]]", "only = [\"three*\"]\n[[member]]", 1), "subjects are single"),
        (GOOD.replace("4096", "\"1M\""), "twice"),
        (GOOD.replace("{members})", "{members}"), "correct it"),
        (GOOD.replace("op =", "subjects = \"three\"\nop ="), "no subject is named \"three\""),
        (GOOD.replace("\"b.img\"", "\"\""), "--member b=DEVICE"),
        (GOOD.replace("name = \"b\"", "name = \"members\""), "neither \"members\""),
        ("name = \"x\"".to_owned(), "add a [[subject]]"),
        (GOOD.replace("[[job]]", "[job]"), "tables under [[member]], [[subject]] or [[job]]"),
        (
            "name = \"x\"\nsubject = \"a\"".to_owned(),
            "tables under [[member]], [[subject]] or [[job]]",
        ),
        (GOOD.replace("chunk = [", "order = \"randm\"\nchunk = ["), "order is \"randm\""),
        (
            GOOD.replace("chunk = [", "order = [\"alternte\"]\nchunk = ["),
            "did you mean \"alternate\"?",
        ),
        (GOOD.replace("op =", "mount = \"sync\"\nop ="), "mount = \"sync\" on a raw device"),
        (GOOD.replace("op =", "mkfs = [\"\", \"-i 8192\"]\nop ="), "mkfs = \"-i 8192\" on a raw"),
        (GOOD.replace("op = \"read\"", ""), "op is not set; take one of: read, write, mixed"),
    ];
    for (text, expected) in cases {
        let error = error_of(&text);
        assert!(error.contains(expected), "expected {expected:?} in: {error}");
    }
}

/// A seek is a random read, one at a time, in either notation.
#[test]
fn seeks_are_short_for_random_reads_of_fio() {
    let jobs = |job: &str| {
        let text = format!("{}[[job]]\n{job}\n", GOOD.split("[[job]]").next().unwrap());
        parse_campaign(&text, "test.toml").map(|campaign| campaign.jobs)
    };
    let fio = "tool = 'fio'\npattern = 'rand'\nop = 'read'\niodepth = 1\nblock_size = '512'";
    let seek = jobs("tool = 'seek'\nblock_size = '512'").unwrap();
    assert_eq!(seek, jobs(fio).unwrap());
    let error = jobs("tool = 'seek'\niodepth = 4").unwrap_err().to_string();
    assert!(error.contains("iodepth is set by tool = \"seek\""), "{error}");
    // An older run stored the same quantity under other names.
    let found = ["seek_rate", "seek_time"].map(crate::metric::Metric::find);
    assert_eq!(found.map(|metric| metric.unwrap().name()), ["iops", "latency_mean"]);
}

/// Otherwise one subject would be measured under several names, and one of them would win.
#[test]
fn a_list_without_its_place_in_the_template_is_refused() {
    let cases = [
        ("chunk = [\"64K\", \"512K\"]", "{chunk}"),
        ("chunk = \"64K\"", "{chunk}"),
        ("members = [1, 2]", "{members}"),
        ("buses = 1", "{members}"),
        ("order = [\"given\", \"reversed\"]", "{members}"),
    ];
    let fixed = GOOD.replace("raid0(chunk={chunk}, {members})", "raid0({a}, {b})");
    for (list, place) in cases {
        let error = error_of(&fixed.replace("chunk = [\"64K\", \"1M\"]", list));
        let key = list.split(' ').next().unwrap();
        assert!(error.contains(&format!("has `{key}`, but no {place}")), "{error}");
        assert!(error.contains(&format!("remove `{key}`")), "{error}");
    }
}

#[test]
fn two_jobs_with_one_workload_are_refused_for_one_subject_and_fine_for_two() {
    let job = "[[job]]\npattern = \"seq\"\nop = \"read\"\nblock_size = \"1M\"\n";
    assert!(error_of(&format!("{GOOD}{job}")).contains("twice"));
    let split = GOOD.replace("op = \"read\"", "op = \"read\"\nsubjects = \"single\"");
    parse_campaign(&format!("{split}{job}subjects = \"two*\"\n"), "test.toml").unwrap();
}

#[test]
fn a_scale_changes_amounts_and_not_shapes() {
    let job = "[[job]]\ntool = \"dd\"\nop = \"write\"\nbs = \"1M\"\nsize = \"4G\"\n";
    let campaign = parse_campaign(&format!("{GOOD}{job}"), "test.toml").unwrap();
    let scaled = campaign.clone().scaled(1.0 / 64.0);
    assert_eq!(scaled.region, ByteSize(16 << 20));
    assert_eq!(scaled.jobs[1].settings["size"], [Value::Size(ByteSize(64 << 20))]);
    assert_eq!(scaled.jobs[1].settings["bs"], campaign.jobs[1].settings["bs"]);
    assert_eq!(scaled.jobs[0], campaign.jobs[0]);
    assert!((scaled.runtime_s - 0.2).abs() < 1e-9, "{}", scaled.runtime_s);
    assert!(parse_campaign(&render_campaign(&scaled).unwrap(), "copy").is_ok());
}

/// A size that limits an amount is scaled with it, even if the amount cannot become smaller.
#[test]
fn memory_is_scaled_with_the_size_that_it_is_half_of() {
    let bonnie = |more: &str| {
        let job = format!("[[job]]\ntool = \"bonnie\"\nfiles = 0\n{more}\n");
        parse_campaign(&format!("{GOOD}{job}"), "test.toml").unwrap()
    };
    let sizes = |campaign: &Campaign| {
        let of = |name: &str| campaign.jobs[1].settings[name][0].to_string();
        [of("size"), of("ram")]
    };
    for more in ["size = \"1G\"\nram = \"512M\"", "ram = \"512M\""] {
        for (factor, expected) in
            [(0.01, ["10M", "5M"]), (0.0001, ["8M", "1M"]), (2.0, ["2G", "1G"])]
        {
            let scaled = bonnie(more).scaled(factor);
            Planned::checked(&scaled).unwrap();
            assert_eq!(sizes(&scaled), expected, "{more} × {factor}");
        }
    }
    assert_eq!(sizes(&bonnie("ram = 0").scaled(0.01)), ["10M", "0"], "nothing stays nothing");
}

#[test]
fn only_keeps_the_baselines_and_what_is_named() {
    let text = GOOD.replacen("[[member]]", "only = [\"*1M\"]\n[[member]]", 1);
    let campaign = parse_campaign(&text, "test.toml").unwrap();
    let names: Vec<String> = campaign.expand().into_iter().map(|subject| subject.name).collect();
    assert_eq!(names, ["single", "two 1M"]);
}

#[test]
fn the_example_is_a_campaign() {
    let campaign = parse_campaign(include_str!("../../examples/campaign.toml"), "example").unwrap();
    assert!(!crate::matrix::Planned::of(&campaign).cells.is_empty());
}

#[test]
fn what_is_not_scaled_stays_and_what_is_made_smaller_is_never_larger() {
    let text = "name = 's'\nregion = '20500K'\nruntime_s = 0.1\n[[subject]]\nname = 'a'\nstack = 'ram(1G)'\n\
                baseline = true\n[[job]]\ntool = 'dd'\nop = 'read'\nsize = ['4M', '900M']\nbs = '1M'\n";
    let campaign = parse_campaign(text, "test").unwrap();
    assert_eq!(campaign.clone().scaled(1.0), campaign);
    let sizes = |factor: f64| {
        let job = campaign.clone().scaled(factor).jobs.remove(0);
        job.settings["size"].iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(sizes(0.001), ["4M", "8M"]);
    assert_eq!(sizes(0.5), ["4M", "450M"]);
    assert_eq!(sizes(3.0), ["12M", "2700M"]);
    assert_eq!(campaign.scaled(0.5).runtime_s, 0.1);
}

/// Found by a fuzzer: dd's default size, made smaller, held no block of its own.
#[test]
fn what_is_made_smaller_holds_a_block() {
    let text = "name = \"large\"\n[[subject]]\nname = \"ram\"\nstack = \"ram(2400M)\"\nbaseline = true\n\
                [[job]]\ntool = \"dd\"\nop = \"write\"\nbs = \"900M\"\n";
    let scaled = parse_campaign(text, "large").unwrap().scaled(0.01);
    assert_eq!(scaled.jobs[0].settings["size"], [Value::Size(ByteSize(900 << 20))]);
    Planned::checked(&scaled).unwrap();
}

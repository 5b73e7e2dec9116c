use super::*;

const GOOD: &str = r#"
name = "stripe"

[[subject]]
name = "single"
stack = "a.img"
baseline = true

[[subject]]
name = "two"
stack = "raid0(chunk=64K, a.img, b.img)"

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
    assert_eq!(campaign.repetitions, 3);
    assert_eq!(campaign.seed, DEFAULT_SEED);
    assert_eq!(campaign.jobs[0].block_size.0, [ByteSize(1 << 20), ByteSize(4096)]);
    let again = parse_campaign(&render_campaign(&campaign).unwrap(), "copy").unwrap();
    assert_eq!(again, campaign);
}

#[test]
fn an_unknown_field_is_named_with_its_line() {
    let error = error_of(&GOOD.replace("name = \"stripe\"", "name = \"stripe\"\nrepetition = 5"));
    assert!(error.contains("test.toml") && error.contains("repetition"), "{error}");
    assert!(error.contains("line 3"), "{error}");
}

#[test]
fn each_fault_names_its_remedy() {
    let cases = [
        (GOOD.replace("baseline = true", ""), "baseline = true"),
        (GOOD.replace("\"two\"", "\"single\""), "two subjects are named \"single\""),
        (GOOD.replace("op = \"read\"", "op = \"reed\""), "unknown variant `reed`"),
        (GOOD.replace("op = \"read\"", "op = []"), "op is empty"),
        (GOOD.replace("4096", "1000"), "multiple of 512"),
        (GOOD.replace("4096", "\"4Q\""), "is not a size"),
        (GOOD.replace("op =", "tool = \"bonnie\"\nop ="), "take one of: fio"),
        (GOOD.replace("op =", "iodepth = 0\nop ="), "take 1 to 4096"),
        (GOOD.replace("stack = \"a.img\"", "stack = \"a.img\"\npath = \"b\""), "exactly one of"),
        (GOOD.replacen("[[subject]]", "repetitions = 0\n[[subject]]", 1), "1 to 1000"),
        (GOOD.replace("4096", "\"1M\""), "twice"),
        (GOOD.replace("raid0(chunk=64K, a.img, b.img)", "raid0(chunk=64K,"), "correct the stack"),
        ("name = \"x\"".to_owned(), "add a [[subject]]"),
        (GOOD.replacen("[[subject]]", "runtime_s = nan\n[[subject]]", 1), "runtime_s"),
    ];
    for (text, expected) in cases {
        let error = error_of(&text);
        assert!(error.contains(expected), "expected {expected:?} in: {error}");
    }
}

#[test]
fn the_example_is_a_campaign() {
    let campaign = parse_campaign(include_str!("../../examples/campaign.toml"), "example").unwrap();
    assert_eq!(crate::matrix::plan_matrix(&campaign).len(), 18);
}

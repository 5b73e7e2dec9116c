use super::*;
use crate::tool::tests::support::{
    commands, device, folder, listed, output, run_of, settings, trial,
};

const TOLD: &str = r#"{"bytes_per_second":41943040.0,"requests_per_second":640.5,"requests":1281,
  "read_bytes":83886080,"written_bytes":0,"latency_ns":{"mean":210000.5,"max":900000,"p50":200000}}"#;

fn parse(stdout: &str) -> Result<Measured, ToolError> {
    let settings = settings(&Replay, "trace = \"/t\"");
    Replay.parse(&trial(&settings, &device(), 1), &run_of(vec![output(stdout)]))
}

#[test]
fn a_trial_is_one_command() {
    let plan = |values: &str, target: &Target| {
        let settings = settings(&Replay, values);
        let spec = TrialSpec { runtime_s: 5.0, ..trial(&settings, target, 1) };
        Replay.plan(&spec).map(|script| commands(&script))
    };
    assert_eq!(
        plan("trace = \"/a b\"", &device()).unwrap(),
        "braid trace replay '/a b' --on /dev/sdx --part 5s --limit 20s --region 1M --held --reads-only --json"
    );
    assert_eq!(
        plan("trace = \"/t\"\nof = \"8,0\"\nop = \"all\"", &device()).unwrap(),
        "braid trace replay /t --on /dev/sdx --part 5s --limit 20s --region 1M --held --of 8,0 \
         --destroy /dev/sdx --json"
    );
    assert!(plan("trace = \"/t\"", &folder()).is_err());
    let check = |values: &str, processes| Replay.check(&settings(&Replay, values), processes);
    assert!(check("", 1).unwrap_err().contains("trace is missing"));
    assert!(check("trace = \"/t\"", 2).unwrap_err().contains("processes = 1"));
    let work = |values: &str| Replay.work(&settings(&Replay, values), 1).writes;
    assert_eq!(work("trace = \"/t\""), Writes::Nothing);
    assert_eq!(work("trace = \"/t\"\nop = \"all\""), Writes::UntilTime);
}

#[test]
fn what_it_says_is_read() {
    assert_eq!(
        listed(&parse(TOLD).unwrap()),
        [
            ("throughput", 41_943_040.0),
            ("iops", 640.5),
            ("requests", 1281.0),
            ("latency_mean", 210_000.5),
            ("latency_max", 900_000.0),
            ("bytes_read", 83_886_080.0),
            ("latency_p50", 200_000.0),
        ]
    );
    assert_eq!(parse(&TOLD.replace("1281", "0")), Err(ToolError::Nothing { tool: "replay" }));
    for bad in ["", "{}", "[1]", &TOLD.replace("mean", "mode"), &TOLD.replace("1281", "\"1\"")] {
        let error = parse(bad).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{bad:?}: {error}");
    }
}

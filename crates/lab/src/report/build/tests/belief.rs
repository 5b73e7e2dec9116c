//! Whom an answer names when faster ones cannot be believed, and what it says of the baseline.

use super::*;
use crate::analysis::{compare_kinds, find_overall};

const THREE: &str = r#"
name = "three"
repetitions = 1
[[subject]]
name = "slow"
path = "/dev/sda"
baseline = true
[[subject]]
name = "middle"
path = "/dev/sdb"
[[subject]]
name = "fast"
path = "/dev/sdc"
[[subject]]
name = "absent"
path = "/dev/sdd"
[[job]]
tool = "meter"
op = ["read", "write"]
subjects = ["slow", "middle", "fast"]
[[job]]
tool = "meter"
op = "write"
pattern = "rand"
subjects = ["slow", "absent"]
"#;

fn three(repetitions: u32) -> Results {
    let mut plan = campaign(THREE);
    plan.repetitions = repetitions;
    results(&plan, |subject, workload, repetition| {
        let rate = match subject.name.as_str() {
            "slow" => 10e6,
            "middle" => 20e6,
            _ => 70e6,
        };
        headline(workload, rate * noise(0.001, &[repetition.into()]))
    })
}

fn report_as(results: &Results, judged: &[(&str, &str, Standing)]) -> Report {
    build_report(&analyse_as(results, judged), results, Path::new("results"))
}

const READ: &str = "sequential read 1M";
const WRITE: &str = "sequential write 1M";

/// The fastest is thrown out: the next is not the fastest because of it, proven or only seen.
#[test]
fn nobody_is_named_where_one_that_is_not_believed_was_faster() {
    for repetitions in [1, 10] {
        let results = three(repetitions);
        let report = report_as(&results, &[("fast", READ, Standing::Invalid)]);
        check(&report);
        let said = report.answer.join(" ");
        assert!(
            said.contains(
                "Nobody is named in sequential reads: fast was faster than middle, the fastest \
                 that can be believed, and its own number cannot be."
            ),
            "{said}"
        );
        assert!(!said.contains("middle in"), "{said}");
        assert!(!said.contains("for sequential reads take"), "{said}");
        let row = row_of(&report, "Who is best at what", "sequential reads");
        assert_eq!(row[1], "—");
        assert_eq!(row[2], "nobody is named: 1 of those left out were faster");
        assert_eq!(row[4], "1 of 3");
        // Where all are believed nothing changes.
        let row = row_of(&report, "Who is best at what", "sequential writes");
        assert_eq!((row[1], row[4]), ("fast", "0"));
    }
}

#[test]
fn a_slower_one_that_is_left_out_is_counted() {
    let results = three(10);
    let report = report_as(&results, &[("slow", READ, Standing::Invalid)]);
    let said = report.answer.join(" ");
    assert!(said.contains("for sequential reads and sequential writes take fast"), "{said}");
    let lacking = "Without a number that can be believed are 1 of 3 subjects in sequential reads.";
    assert!(said.contains(lacking), "{said}");
    let row = row_of(&report, "Who is best at what", "sequential reads");
    assert_eq!((row[1], row[4]), ("fast", "1 of 3"));
}

/// Over all workloads as well: nobody is recommended past a faster one that is not believed.
#[test]
fn nobody_is_recommended_over_all_past_a_faster_one() {
    let results = three(10);
    let judged = [("fast", READ, Standing::Invalid), ("fast", WRITE, Standing::Invalid)];
    let report = report_as(&results, &judged);
    check(&report);
    assert!(report.answer[0].starts_with("Nobody is named: fast was faster"), "{report:?}");
    assert!(!report.answer.iter().any(|said| said.starts_with("Take ")), "{:?}", report.answer);
    let analysis = analyse_as(&results, &judged);
    let overall = find_overall(&analysis).unwrap();
    assert_eq!((overall.without_belief(&analysis), overall.planned(&analysis)), (vec![2], 3));
    assert_eq!(overall.faster_without_belief(&analysis), [2]);
    // A subject that the campaign does not measure at it is not left out of it.
    let contests = compare_kinds(&analysis).contests;
    let (_, random) = contests.iter().find(|(kind, _)| kind.name == "random writes").unwrap();
    assert_eq!((random.planned(&analysis), random.without_belief(&analysis).len()), (2, 0));
}

/// Reads at two sizes, writes; the stripe gains in large reads, and small ones are invalid.
fn partly(repetitions: u32) -> Results {
    let plan = SMALL.replace(
        "tool = \"meter\"\nop = [\"read\", \"write\"]",
        "tool = \"meter\"\nop = [\"read\", \"write\"]\nblock_size = [\"4K\", \"1M\"]",
    );
    let mut plan = campaign(&plan);
    plan.repetitions = repetitions;
    results(&plan, |subject, workload, repetition| {
        let factor: f64 = match (subject.baseline, workload.settings.word("op")) {
            (true, _) => 1.0,
            (false, "read") => 1.2,
            (false, _) => 0.98,
        };
        headline(workload, 1e8 * factor * noise(0.0001, &[repetition.into(), factor.to_bits()]))
    })
}

/// One number that cannot be believed does not take its kind of work with it, and the worst kind is
/// only called slower when that is proven.
#[test]
fn a_kind_is_compared_over_what_is_left_of_it() {
    let judged = [("stripe", "sequential read 4K", Standing::Invalid)];
    let answer = |repetitions| report_as(&partly(repetitions), &judged).answer.join(" ");
    let said = answer(3);
    assert!(said.contains("stripe leads: 1.20 times as fast as single"), "{said}");
    assert!(said.contains("in sequential reads (1 of its 2 workloads)"), "{said}");
    assert!(said.contains("; the least is sequential writes with 98.0"), "{said}");
    assert!(!said.contains("but slower in"), "{said}");
    let said = answer(10);
    assert!(said.contains(", but slower in sequential writes: 98.0"), "{said}");
}

/// Second comes what each subject is against the baseline.
#[test]
fn the_comparison_with_the_baseline_comes_second() {
    let plan = SMALL.replace(
        "[[job]]",
        "[[subject]]\nname = \"mirror\"\nstack = \"raid1({members})\"\n\
         [[subject]]\nname = \"pair\"\nstack = \"raid1({members})\"\n[[job]]",
    );
    let plan = plan.replace("op = [", "block_size = [\"64K\", \"1M\"]\nop = [");
    let results = results(&campaign(&plan), |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let factor = match (subject.name.as_str(), reads) {
            ("mirror" | "pair", false) => 0.5,
            ("stripe", _) => noise(0.2, &[repetition.into()]),
            _ => noise(0.2, &[repetition.into(), subject.name.len() as u64]),
        };
        headline(workload, 1e8 * factor)
    });
    let report = report_as(&results, &[]);
    check(&report);
    assert!(report.answer[1].starts_with("Against single, "), "{:?}", report.answer);
    let said = &report.answer[1];
    assert!(said.contains("mirror and pair are slower in 2 of 4 workloads"), "{said}");
    assert!(
        said.ends_with(
            "by the range of 3 repetitions: of equal ones about 25 % would count as well."
        ),
        "{said}"
    );
}

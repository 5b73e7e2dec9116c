//! The published series: constants are those of the calibration, and what predictions are off by is what they say.

use braid_model::{BusProfile, Kind, profile};
use braid_predict::off::{ENOUGH, EVIDENCE, Family};
use braid_predict::{Closed, Layout, Machine, MemberModel, Places, closed_cut};
use braid_reproduce::{CalibUse, Models, Predictor, Role, Row, Study, built_in};

fn off(study: &Study, row: &Row) -> Option<f64> {
    let model = Models.predict(study, &row.asked).ok()?;
    let inside = model >= row.low && model <= row.high;
    Some(if inside { 0.0 } else { (model / row.published).ln().abs() })
}

/// Each study as a model is shown it: without the rows that it is judged on.
fn studies() -> Vec<(Study, Vec<Row>)> {
    let blind = |study: Study| {
        let rows = study.rows.clone();
        let rest = rows.iter().filter(|row| row.role != Role::Prediction).cloned().collect();
        (Study { rows: rest, ..study }, rows)
    };
    built_in().into_iter().map(blind).collect()
}

/// A row that a constant was taken from comes out as it was published, within a hundredth; where the constant is the mean
/// of two disks' rows, within four; what was measured of a disk whose inside is a data sheet's, within a tenth.
#[test]
fn constants_are_of_the_rows_that_they_name() {
    let mut wrong = Vec::new();
    for (study, rows) in studies() {
        for row in rows.iter().filter(|row| row.role == Role::Calibration(CalibUse::Input)) {
            let Some(off) = off(&study, row) else { continue };
            // Constants of their host are means over both.
            let is_of_two = matches!(row.asked.subject.as_str(), "disk1" | "disk2");
            let is_data_sheet = row.asked.subject == "st3500630as";
            let is_check = row.asked.id == "rapiddisk.rxdsk.1M.1G.rand-write";
            let most = if is_data_sheet {
                0.1
            } else if is_of_two {
                0.04
            } else if is_check {
                0.03
            } else {
                0.01
            };
            if off > most {
                wrong.push(format!("{}: off by {off:.3}", row.asked.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The error of a family of devices is that of its rows, counted here another way.
#[test]
fn what_predictions_are_off_by_is_what_the_rows_say() {
    let family = |study: &Study| match study.name.as_str() {
        "rapiddisk" => Family::Memory,
        "rally2-raid0" | "adata-4x-raid0" | "cruzer-6x-raid0" | "verbatim-2x-raid0" => {
            Family::Sticks
        }
        _ => Family::Disks,
    };
    let mut scores = Vec::new();
    for (study, rows) in studies() {
        for row in rows.iter().filter(|row| row.role == Role::Prediction) {
            scores.push((family(&study), row.held_out, off(&study, row).expect("a value")));
        }
    }
    for one in EVIDENCE {
        let of = |held_out: bool| {
            let of_both = scores.iter().filter(move |row| row.0 == one.family && row.1 == held_out);
            of_both.map(|row| row.2).collect::<Vec<f64>>()
        };
        let (held_out, in_view) = (of(true), of(false));
        assert_eq!((one.held_out.rows, one.in_view.rows), (held_out.len(), in_view.len()));
        let Some(said) = one.off_by() else { continue };
        let within = |scores: &[f64]| scores.iter().filter(|score| **score <= said.log).count();
        match held_out.len() {
            ENOUGH.. => assert!(within(&held_out) * 10 >= held_out.len() * 9, "{one:?}"),
            few => {
                let all = few + in_view.len();
                assert_eq!(within(&held_out) + within(&in_view), all, "{one:?}: {said:?}");
            }
        }
        let worst = held_out.iter().chain(&in_view).copied().fold(0.0, f64::max);
        assert!(worst > said.log - 0.01, "{one:?}: no row is as far off as that");
    }
}

/// Bytes a second of requests at random places within 1 GiB, 32 at once, of the disk below the RAM cache with
/// a queue so deep.
fn at_random(queue_depth: usize, request: u64, reads: u64) -> f64 {
    let profile = profile("sata-7200").expect("a profile that comes with braid");
    let Kind::Disk(disk) = profile.kind else { panic!("{:?} is no disk", profile.kind) };
    let kind = Kind::Disk(braid_model::Disk { queue_depth, ..disk });
    let member = MemberModel { kind, size: profile.capacity.expect("its size"), bus: 0 };
    let mut machine = Machine::new(Layout::Single, &[member], &[BusProfile::default()], 512 << 10);
    let range = 1 << 30;
    let (count, places) = (range / request, Places::Uniform);
    let load = Closed { count, request, reads, places, range, processes: 1, depth: 32 };
    closed_cut(&mut machine, &[load], ((512 << 20) / request).clamp(256, 4000)).rate()
}

/// The profile's depth of that disk's queue is the one with which the four rows at random err least.
#[test]
fn the_depth_of_a_queue_is_of_the_rows_that_it_names() {
    let (study, _) =
        studies().into_iter().find(|one| one.0.name == "rapiddisk").expect("the study");
    let published = |name: &str| {
        let row = study.rows.iter().find(|row| row.asked.id == format!("rapiddisk.sata.{name}"));
        row.expect("a row of calibration").published
    };
    let off = |depth: usize| -> f64 {
        [
            ("4K.1G.rand-read", 4096, 100),
            ("4K.1G.rand-write", 4096, 0),
            ("1M.1G.rand-read", 1 << 20, 100),
            ("1M.1G.rand-write", 1 << 20, 0),
        ]
        .map(|(name, request, reads)| {
            (at_random(depth, request, reads) / published(name)).ln().abs()
        })
        .iter()
        .sum()
    };
    let all = [1, 2, 4, 8, 16, 32].map(|depth| (depth, off(depth)));
    println!("{all:?}");
    let best = all.iter().min_by(|one, other| one.1.total_cmp(&other.1)).expect("some");
    let said = profile("sata-7200").and_then(|profile| profile.constant("queue_depth"));
    assert_eq!(said, Some(best.0 as f64), "{all:?}");
}

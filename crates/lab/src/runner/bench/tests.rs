use super::*;
use crate::settings::Settings;
use crate::world::{StopFlag, SystemWorld};

/// Returns a trial of a tool whose parser is not used.
fn spec<'a>(settings: &'a Settings, target: &'a Target, ramp_s: f64) -> TrialSpec<'a> {
    TrialSpec {
        settings,
        target,
        processes: 1,
        region_bytes: 1 << 30,
        room_bytes: 1 << 30,
        runtime_s: 1.0,
        ramp_s,
        seed: 7,
        scratch: Path::new("/scratch"),
        sources: Path::new("/sources"),
    }
}

#[test]
fn a_server_works_during_a_ramp_only_for_tools_that_have_one() {
    let (settings, target) = (Settings::default(), Target::Folder("/mnt/t".into()));
    let mut measured = Measured::default();
    measured.push(Metric::Requests, 4000.0).unwrap();
    let cost = |tool: &str| {
        let ramp_s = crate::tool::find(tool).unwrap().ramp_s(3.0);
        let spec = spec(&settings, &target, ramp_s);
        server_cpu(&measured, &spec, Some(0.16)).map(|sample| sample.value)
    };
    // 40 µs per request; fio sent three times as many before it counted.
    assert_eq!((cost("sysbench"), cost("fio")), (Some(40_000.0), Some(10_000.0)));
    let spec = spec(&settings, &target, 0.0);
    assert_eq!(server_cpu(&measured, &spec, None), None);
    assert_eq!(server_cpu(&Measured::default(), &spec, Some(1.0)), None);
}

#[test]
fn each_source_has_room_and_an_archive_beside_its_tree() {
    use crate::tool::source::make_source;
    const SIZE: u64 = 1 << 20;
    let file = SourceData::File(SIZE);
    let tree = SourceData::Tree(SIZE);
    let archive = SourceData::Archive(SIZE);
    let room = |all: &[&SourceData]| room_of_sources(all.iter().map(|data| **data));
    assert_eq!(room(&[&file, &file]), SIZE);
    // Equal sizes do not make one source.
    assert_eq!(room(&[&file, &archive]), room(&[&file]) + room(&[&archive]));
    // The space that they really take.
    let dir = tempfile::tempdir().unwrap();
    for data in [tree, archive] {
        make_source(data, dir.path(), 1, &StopFlag::default(), &mut SystemWorld::new()).unwrap();
    }
    let done = std::process::Command::new("du").args(["-s", "-B1"]).arg(dir.path()).output();
    let text = String::from_utf8(done.unwrap().stdout).unwrap();
    let taken: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
    assert!(taken > 2 * SIZE, "{text}");
    // The archive's own tree takes as much as the existing one.
    assert!(taken <= room(&[&archive]), "{text}");
}

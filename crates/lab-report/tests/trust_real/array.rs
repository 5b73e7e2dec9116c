//! Work of md's arrays beside the tool.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use braid_lab::campaign::Setup;
use braid_lab::evidence::{Evidence, Roots, Watch, take_under};
use braid_lab::metric::{Measured, Metric};
use braid_lab_report::trust::Standing;

use crate::machine::{MIB, text};
use crate::runs::{Run, found, push, workload};

/// A kernel's md rebuilds a mirror while its tables are read: at 100 kB/s, for seven minutes,
/// which a guest on the busiest machine does not see the end of.
#[test]
fn a_rebuild_beside_the_tool() {
    let Some(klab) = std::env::var_os("KLAB").filter(|klab| !klab.is_empty()) else {
        println!(
            "skipped: KLAB names no launcher of guests with md; parsers are tested with its text"
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let disks = ["a", "b", "c"].map(|name| {
        let path = dir.path().join(name);
        fs::File::create(&path).unwrap().set_len(40 * MIB).unwrap();
        path.display().to_string()
    });
    let script = "set -e; exec 2>/dev/null; set -- $KLAB_DISKS; cd /proc
        echo 100 > sys/dev/raid/speed_limit_max; echo 50 > sys/dev/raid/speed_limit_min
        mdadm --create /dev/md0 --run -l1 -n2 --assume-clean $1 $2
        echo ==stat; cat stat; echo ==diskstats; cat diskstats; echo ==mdstat; cat mdstat
        mdadm /dev/md0 --fail $2 --remove $2; mdadm /dev/md0 --add $3
        until grep -q recovery.=..*% mdstat; do :; done
        dd if=/dev/md0 of=/dev/null bs=1M count=4 iflag=direct
        echo ==stat; cat stat; echo ==diskstats; cat diskstats; echo ==mdstat; cat mdstat";
    let mut command = Command::new(klab);
    command.args(["run", "--disk", &disks.join(","), "--", script]).process_group(0);
    let output = command.output().unwrap();
    if !output.status.success() {
        println!("skipped: no guest: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let output = text(&output);
    let tables: Vec<(&str, &str)> = output
        .split("==")
        .filter_map(|part| part.split_once('\n'))
        .filter(|(name, _)| ["stat", "diskstats", "mdstat"].contains(name))
        .collect();
    let (before, after) = tables.split_at(3);
    let watch = Watch { target: Some("md0".into()), ..Watch::default() };
    let look = |name: &str, tables: &[(&str, &str)]| {
        let roots = Roots { proc: dir.path().join(name), sys: "/nonexistent".into() };
        fs::create_dir(&roots.proc).unwrap();
        for (name, text) in tables {
            fs::write(roots.proc.join(name), text).unwrap();
        }
        take_under(&roots, &watch)
    };
    let (before, after) = (look("before", before), look("after", after));
    let workload = workload("dd", true, Setup::default());
    let run = |evidence: Evidence| {
        let mut measured = Measured::default();
        push(&mut measured, Metric::BytesRead, (4 * MIB) as f64);
        push(&mut measured, Metric::Seconds, 5.0);
        Run { commands: Vec::new(), evidence, measured, duration_s: 5.0, region_bytes: 4 * MIB }
    };
    let evidence = Evidence::between(&before, &after);
    assert_eq!(evidence.target.unwrap().read_bytes / MIB, 4);
    let file = dir.path().join("a");
    let finding = found(&workload, &file, run(evidence), "rebuilding").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("md0: recovery"), "{finding:?}");
    let quiet = Evidence::between(&before, &before);
    assert_eq!(found(&workload, &file, run(quiet), "rebuilding"), None);
}

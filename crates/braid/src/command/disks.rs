//! `braid disks`: the block devices of this machine, and what is on them. Nothing is written.

use std::path::Path;

use braid_probe::{Refusal, find_users_by_kernel, look_at};
use braid_shell::shown;
use serde_json::{Value, json};

use crate::cli::Disks;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_service::metadata::block_devices;

pub(super) fn disks(options: &Disks) -> Result<(), Failure> {
    let found =
        block_devices()?.iter().map(|path| (path.clone(), look_at(path))).collect::<Vec<_>>();
    // A loop device without a file, a drive without a medium.
    let has_bytes =
        |facts: &Result<_, Refusal>| !matches!(facts, Ok(braid_probe::MemberFacts { size: 0, .. }));
    let found = found.into_iter().filter(|(_, facts)| has_bytes(facts));
    if options.json {
        let disks: Vec<Value> = found.map(|(path, facts)| described(&path, facts)).collect();
        println!("{}", json!({ "output_version": OUTPUT_VERSION, "disks": disks }));
        return Ok(());
    }
    for (path, facts) in found {
        let text = match facts {
            Ok(facts) => format!("{facts}"),
            Err(refusal) => format!("{}: {}", path.display(), refusal.reason),
        };
        let used = used_by(&path);
        let used =
            if used.is_empty() { String::new() } else { format!("; used by {}", used.join(", ")) };
        println!("{}{}", shown(&text), shown(&used));
    }
    Ok(())
}

/// Returns the users of a device that the kernel knows: mounts, arrays, loop devices.
fn used_by(path: &Path) -> Vec<String> {
    let holders = find_users_by_kernel(path).map(|usage| usage.holders).unwrap_or_default();
    holders.iter().map(ToString::to_string).collect()
}

fn described(path: &Path, facts: Result<braid_probe::MemberFacts, Refusal>) -> Value {
    let facts = match facts {
        Ok(facts) => facts,
        Err(refusal) => {
            return json!({
                "path": path, "size_bytes": null, "disk": null, "partition": null, "model": null,
                "serial": null, "wwn": null, "contents": [], "used_by": used_by(path), "free": false,
                "error": refusal.reason.to_string(),
            });
        }
    };
    let contents: Vec<String> = facts.signatures.iter().map(ToString::to_string).collect();
    let used = used_by(path);
    json!({
        "path": path, "size_bytes": facts.size, "disk": facts.disk, "partition": facts.partition,
        "model": facts.model, "serial": facts.serial, "wwn": facts.wwn,
        "free": contents.is_empty() && used.is_empty(), "contents": contents, "used_by": used,
        "error": null,
    })
}

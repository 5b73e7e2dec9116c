//! `braid disks`: the block devices of this machine, and what is on them. Nothing is written.

use std::path::Path;

use braid_probe::{BlockDevice, Identity, MemberFacts, find_users_by_kernel, identify, look_at};
use braid_shell::shown;
use serde_json::{Value, json};

use crate::cli::Disks;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_service::metadata::block_devices;

/// Facts about a device, or the reason why there are none.
type Found = Result<MemberFacts, String>;

pub(super) fn disks(options: &Disks) -> Result<(), Failure> {
    let devices = block_devices()?;
    let found = devices.iter().map(|path| (path.as_path(), found(path)));
    // A loop device without a file and a drive without a medium have no bytes.
    let found = found.filter(|(_, found)| found.as_ref().map_or(true, |facts| facts.size > 0));
    if options.json {
        let disks: Vec<Value> = found.map(|(path, found)| described(path, found)).collect();
        println!("{}", json!({ "output_version": OUTPUT_VERSION, "disks": disks }));
        return Ok(());
    }
    for (path, found) in found {
        let text = match found {
            Ok(facts) => facts.to_string(),
            Err(why) => format!("{}: {why}", path.display()),
        };
        let used = used_by(path);
        let used =
            if used.is_empty() { String::new() } else { format!("; in use: {}", used.join(", ")) };
        println!("{}{}", shown(&text), shown(&used));
    }
    Ok(())
}

/// Looks at a device. A loop device whose file is not in this file system may be served by a process that has stopped, and
/// would be waited for: it is not opened.
fn found(path: &Path) -> Found {
    let number = match identify(path) {
        Ok((_, Identity::Block(number))) => number,
        Ok(_) => return Err("it is no block device".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let device = BlockDevice::find(number).ok().flatten();
    let behind = device.and_then(|device| device.whole_disk().backing_file());
    match behind.filter(|file| !file.exists()) {
        Some(file) => Err(format!("it is not looked at: its file {} is not there", file.display())),
        None => look_at(path).map_err(|refusal| refusal.reason.to_string()),
    }
}

/// Returns the users of a device that the kernel knows: mounts, arrays, loop devices.
fn used_by(path: &Path) -> Vec<String> {
    let holders = find_users_by_kernel(path).map(|usage| usage.holders).unwrap_or_default();
    holders.iter().map(ToString::to_string).collect()
}

fn described(path: &Path, found: Found) -> Value {
    let facts = match found {
        Ok(facts) => facts,
        Err(why) => {
            return json!({
                "path": path, "size_bytes": null, "disk": null, "partition": null, "model": null,
                "serial": null, "wwn": null, "contents": [], "used_by": used_by(path), "free": false,
                "error": why,
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

//! `braid forget`, `braid rename`: what is remembered of a volume that is down.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use braid_shell::shell_path;
use braid_stack::Node;

use crate::cli::{Forget, Rename};
use braid_service::control::{ErrorCode, OUTPUT_VERSION};
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};
use braid_service::record::Record;
use braid_service::volume::NameLock;

/// Moves `NAME.toml` to where the next `up NAME` does not look, and an administrator may.
pub(super) fn forget(forget: &Forget) -> Result<(), Failure> {
    let places = Places::from_environment();
    let name = &forget.name;
    let _alone = alone(&places, name)?;
    let (file, kept) = (places.config_file(name), places.forgotten(name));
    known(&file, name)?;
    if let Some(folder) = kept.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.context(format_args!("cannot make the folder {}", folder.display()))?;
    }
    // Another file system, perhaps. The copy is whole before the original goes.
    let copied = std::fs::copy(&file, &kept).and_then(|_| std::fs::File::open(&kept)?.sync_all());
    copied.context(format_args!("cannot keep it in {}", kept.display()))?;
    std::fs::remove_file(&file).context(format_args!("cannot remove {}", file.display()))?;
    if forget.json {
        let kept = kept.display().to_string();
        let json =
            serde_json::json!({ "output_version": OUTPUT_VERSION, "name": name, "kept": kept });
        println!("{json}");
        return Ok(());
    }
    println!(
        "{name} is forgotten; its members are as they were\n  `braid up {}` brings it back",
        shell_path(&kept)
    );
    Ok(())
}

/// Gives a volume that is down another name.
pub(super) fn rename(rename: &Rename) -> Result<(), Failure> {
    let places = Places::from_environment();
    let (name, new) = (&rename.name, &rename.new_name);
    check_name(new)?;
    if name == new {
        check_name(name)?;
        known(&places.config_file(name), name)?;
        return Err(Failure::usage(format!("{name} is called so already")));
    }
    // In one order, so that two that exchange names do not wait for each other.
    let (first, second) = if name < new { (name, new) } else { (new, name) };
    let _alone = (alone(&places, first)?, alone(&places, second)?);
    let (file, to) = (places.config_file(name), places.config_file(new));
    let record = known(&file, name)?;
    if to.symlink_metadata().is_ok() {
        return Err(Failure::refused(format!("there is a volume called {new}: {}", to.display()))
            .next(format!("another name; or `braid forget {new}`")));
    }
    std::fs::rename(&file, &to).context(format_args!(
        "cannot rename {} to {}",
        file.display(),
        to.display()
    ))?;
    let is_md = record.stack.leaves().len() > 1 && has_md(&record.stack);
    let note = "the name in its members' superblocks is another matter, and stays as it was";
    if rename.json {
        let note = is_md.then_some(note);
        let json =
            serde_json::json!({ "output_version": OUTPUT_VERSION, "name": new, "note": note });
        println!("{json}");
        return Ok(());
    }
    println!("{name} is called {new} from now on");
    if is_md {
        println!("  {note}");
    }
    println!(
        "  where systemd starts it: `systemctl disable braid@{name}`, `systemctl enable braid@{new}`"
    );
    Ok(())
}

/// Returns whether the stack has members with superblocks.
fn has_md(stack: &braid_stack::Stack) -> bool {
    matches!(stack.node, Node::Md(_)) || stack.members().iter().any(has_md)
}

/// The record at `file`.
fn known(file: &Path, name: &str) -> Result<Record, Failure> {
    match file.exists() {
        true => Record::read(file),
        false => Err(Failure::failed(format!(
            "no volume called {name} is known: there is no {}",
            file.display()
        ))
        .next("`braid status` lists the volumes that are up")
        .code(ErrorCode::NotFound)),
    }
}

/// Makes sure that the volume is down, and stays so.
fn alone(places: &Places, name: &str) -> Result<NameLock, Failure> {
    check_name(name)?;
    places.prepare_run()?;
    let down = format!("braid down {name}");
    let lock = NameLock::claim(&places.lock(name)).context("cannot lock the volume's name")?;
    let lock = lock.ok_or_else(|| Failure::refused(format!("{name} is up")).next(&down))?;
    if places.control(name).exists() || places.traces(name).exists() {
        return Err(
            Failure::refused(format!("{name} was up when its process was killed")).next(down)
        );
    }
    Ok(lock)
}

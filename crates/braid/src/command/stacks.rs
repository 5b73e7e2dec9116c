//! Stack expressions as they are typed: read, with errors drawn, and made absolute.

use std::path::{Path, PathBuf};

use braid_level::Raid0Layout;
use braid_stack::{File, Md, Node, Stack};

use crate::cli::{Common, TlsArgs, TraceArg};
use braid_service::failure::Failure;
use braid_service::volume::{TlsOptions, TraceTo};

/// Reads an expression of a stack that may be written.
pub(super) fn parse(text: &str) -> Result<Stack, Failure> {
    parse_for(text, false)
}

/// Reads an expression, of a stack that is only read if `is_read_only`: its members may share bytes.
pub(super) fn parse_for(text: &str, is_read_only: bool) -> Result<Stack, Failure> {
    let read = |text: &str| {
        let parsed = if is_read_only { Stack::parse_to_read(text) } else { Stack::parse(text) };
        parsed.map_err(|error| {
            Failure::usage(format!("this stack cannot be read\n{}", error.render(text)))
        })
    };
    let mut stack = read(text)?;
    make_absolute(&mut stack)?;
    // Two spellings of a path may be one now: that is found by reading once more.
    read(&stack.to_string())
}

/// Makes every path absolute: a volume's process, and its record, do not depend on where the
/// command was typed.
fn make_absolute(stack: &mut Stack) -> Result<(), Failure> {
    if let Some(path) = stack.own_path_mut() {
        // The stack language is text; what came from it stays text.
        *path = absolute_path(Path::new(&*path))?.to_string_lossy().into_owned();
    }
    stack.members_mut().iter_mut().try_for_each(make_absolute)
}

/// The path of a member, as the stack has it once it is absolute; of a part, with its path inside made
/// absolute: `part(disk.img, 3)`.
pub(super) fn absolute_path(path: &Path) -> Result<PathBuf, Failure> {
    let called = path.to_str().filter(|text| text.ends_with(')')).map(File::called);
    if let Some(mut part) = called.filter(|file| !file.is_whole()) {
        let inner = absolute_path(part.path())?;
        part.path = inner.to_string_lossy().into_owned();
        return Ok(part.name());
    }
    if let Some(mut remote) = Stack::remote_called(path) {
        make_absolute(&mut remote)?;
        return Ok(remote.to_string().into());
    }
    let path = expand_home(path);
    braid_service::log::note_path(&path);
    std::path::absolute(&path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// Returns the absolute path of a trace, because the process of the volume may have another folder.
pub(super) fn trace_to(typed: Option<&TraceArg>) -> Result<Option<TraceTo>, Failure> {
    let to =
        |arg: &TraceArg| Ok(TraceTo { path: absolute_path(&arg.file)?, most: arg.size.bytes() });
    typed.map(to).transpose()
}

/// Changes `options` to what was typed; what was not typed stays.
pub(super) fn apply_tls(typed: &TlsArgs, options: &mut TlsOptions) -> Result<(), Failure> {
    options.mode = typed.tls.unwrap_or(options.mode);
    if let Some(folder) = &typed.tls_certificates {
        options.certificates = Some(absolute_path(folder)?);
    }
    options.verify_peer |= typed.tls_verify_peer;
    if !typed.allow.is_empty() {
        options.allow.clone_from(&typed.allow);
    }
    Ok(())
}

/// The members of these stacks that `--force` names again, however their paths are spelt.
pub(super) fn forced(common: &Common, all: &[&Stack]) -> Result<Vec<PathBuf>, Failure> {
    let names = all.iter().flat_map(|stack| stack.member_names());
    let remotes = all.iter().flat_map(|stack| stack.remotes());
    let remotes = remotes.filter_map(|(one, _)| one.member_name());
    let members: Vec<PathBuf> = names.map(|(name, _)| name).chain(remotes).collect();
    let known = |path: &PathBuf| match absolute_path(path)? {
        member if members.contains(&member) => Ok(member),
        other => Err(Failure::usage(format!(
            "--force {}: the stack has no such member: {}",
            other.display(),
            all[0]
        ))),
    };
    common.force.iter().map(known).collect()
}

/// A path in quotes is not expanded by the shell.
fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

/// Returns whether `text` is an expression, not a name or a file.
pub(super) fn is_expression(text: &str) -> bool {
    text.contains(['(', '/', ',']) && !text.ends_with(".toml")
}

/// The stack of members that describe their array themselves; their paths are absolute. `layout` is
/// a raid0's, where they do not say it.
///
/// # Errors
/// A path that the stack language, which is text, cannot hold.
pub(super) fn md(layout: Option<Raid0Layout>, paths: &[PathBuf]) -> Result<Stack, Failure> {
    // What is remembered as text is read once now.
    parse(&md_of(layout, paths)?.to_string())
}

/// The same, though a path may be there twice.
///
/// # Errors
/// As [`md`].
pub(super) fn md_of(layout: Option<Raid0Layout>, paths: &[PathBuf]) -> Result<Stack, Failure> {
    let member = |path: &PathBuf| match path.to_str() {
        Some(path) if !path.contains('\0') => Ok(Stack::called(path)),
        _ => Err(Failure::usage(format!("{}: a member's path must be UTF-8", path.display()))
            .next("a symbolic link with another name reaches it")),
    };
    let members = paths.iter().map(member).collect::<Result<_, _>>()?;
    Ok(Stack::from(Node::Md(Md { layout, members })))
}

/// An NBD address as it is from any folder: a volume's process does not stay in the one where the
/// command was typed.
pub(super) fn absolute_address(address: &str) -> String {
    match address.strip_prefix("unix:").map(std::path::absolute) {
        Some(Ok(path)) => format!("unix:{}", path.display()),
        _ => address.to_owned(),
    }
}

//! The base of a campaign's relative paths.
//!
//! Before a run, they are relative to the working directory, as on the command line. A run stores that
//! directory (`working_dir`), so that the results folder alone identifies the measured files, and continuing
//! from any directory measures the same files.
//!
//! Invariants:
//!
//! * a source without relative paths is not changed by a byte;
//! * rooting a rooted campaign changes nothing, in any directory.
//!
//! Deliberately absent: links, which are followed when a file is opened; and `~`, which braid
//! expands.

use std::path::{Component, Path, PathBuf};

use braid_nbd::uri::{Socket, Uri, unix_uri};
use braid_stack::Stack;

use super::{Campaign, Source};
use crate::error::LabError;

impl Campaign {
    /// Returns [`Campaign::rooted_in`] the working directory of this process.
    ///
    /// # Errors
    ///
    /// There is a relative path, and the working directory is unknown.
    pub(crate) fn rooted(&self) -> Result<Self, LabError> {
        if self.working_dir.is_some() || self.relative_paths().is_empty() {
            return Ok(self.clone());
        }
        let folder = std::env::current_dir();
        let folder =
            folder.map_err(LabError::file("find out the working directory", Path::new(".")))?;
        Ok(self.rooted_in(&folder))
    }

    /// Returns the campaign with a base for its relative paths: its own, else `folder`. A campaign without
    /// relative paths needs none.
    #[must_use]
    pub(crate) fn rooted_in(&self, folder: &Path) -> Self {
        let mut rooted = self.clone();
        if rooted.working_dir.is_none() && !rooted.relative_paths().is_empty() {
            rooted.working_dir = Some(folder.to_path_buf());
        }
        rooted
    }

    /// Returns the relative paths as written, each once, whatever their base.
    pub(crate) fn relative_paths(&self) -> Vec<String> {
        let written = Self { working_dir: None, ..self.clone() };
        let mut found = Vec::new();
        for subject in written.expand() {
            with_paths(&subject.source, &mut |path| {
                found.push(path.to_owned());
                path.to_owned()
            });
        }
        found.sort();
        found.dedup();
        found
    }
}

fn is_relative(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/')
}

fn join(folder: &Path, path: &str) -> String {
    // Without the `.` of `./a.img`; a `..` stays, since what is before it may be a link.
    let joined = folder.join(path);
    let kept = joined.components().filter(|part| !matches!(part, Component::CurDir));
    kept.collect::<PathBuf>().display().to_string()
}

/// Returns the source with each relative path changed; `None` if there is none.
fn with_paths(source: &Source, change: &mut dyn FnMut(&str) -> String) -> Option<Source> {
    change_paths(source, &mut |path| is_relative(path).then(|| change(path)))
}

/// Returns the source with those paths replaced for which `change` returns another; `None` if there is none. A
/// source that does not parse has no paths: it is refused elsewhere, or is an unused template.
pub(super) fn change_paths(
    source: &Source,
    change: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Source> {
    let text = match source {
        Source::Path(path) | Source::Directory(path) => change(path),
        Source::Nbd(uri) => {
            let address: Uri = uri.parse().ok()?;
            let Socket::Unix(path) = address.socket else { return None };
            change(&path).map(|path| unix_uri(path, &address.export))
        }
        Source::Stack(_) | Source::Kernel(_) => {
            let mut stack = source.stack()?.clone();
            change_members(&mut stack, change).then(|| stack.to_string())
        }
        Source::Zram(_) | Source::Tmpfs(_) => None,
    };
    text.map(|text| source.with_text(text))
}

/// Returns true if a path was changed; braid expands `~`.
fn change_members(stack: &mut Stack, change: &mut dyn FnMut(&str) -> Option<String>) -> bool {
    let mut is_changed = false;
    if let Some(path) = stack.own_path_mut()
        && !Path::new(path).starts_with("~")
        && let Some(changed) = change(path)
    {
        *path = changed;
        is_changed = true;
    }
    for member in stack.members_mut() {
        is_changed |= change_members(member, change);
    }
    is_changed
}

/// Returns the source with absolute paths.
pub(super) fn resolve(source: Source, folder: &Path) -> Source {
    with_paths(&source, &mut |path| join(folder, path)).unwrap_or(source)
}

/// As [`resolve`], for the device of a member: a path or a stack.
pub(crate) fn resolve_device(device: &str, folder: &Path) -> String {
    resolve(Source::Stack(device.into()), folder).text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::render_campaign;
    use crate::matrix::parse_campaign;

    fn campaign(top: &str, rest: &str) -> Campaign {
        let text = format!(
            "name = \"t\"\n{top}\n{rest}\n\
             [[job]]\npattern = \"rand\"\nop = \"read\"\nblock_size = \"4K\"\n"
        );
        parse_campaign(&text, "test").unwrap()
    }

    fn subject(key: &str, text: &str) -> Campaign {
        campaign("", &format!("[[subject]]\nname = \"s\"\n{key} = '{text}'\nbaseline = true\n"))
    }

    fn source_in(campaign: &Campaign, folder: &str) -> String {
        campaign.rooted_in(Path::new(folder)).expand()[0].source.text().to_owned()
    }

    #[test]
    fn every_relative_path_is_resolved_and_nothing_else() {
        for (key, text, expected) in [
            ("path", "./x.img", "/c1/x.img"),
            ("path", "../x.img", "/c1/../x.img"),
            ("directory", "here", "/c1/here"),
            ("stack", "x.img", "/c1/x.img"),
            ("stack", "raid1(./a, linear(/b, d/c))", "raid1(/c1/a, linear(/b, /c1/d/c))"),
            ("stack", "file(./a, offset=1M)", "file(/c1/a, offset=1M)"),
            ("stack", "model(m.toml, size=1M)", "model(/c1/m.toml, size=1M)"),
            ("stack", "model(hdd, size=1M)", "model(hdd, size=1M)"),
            ("kernel", "raid1(./a, /dev/sdb)", "raid1(/c1/a, /dev/sdb)"),
            ("nbd", "nbd+unix:///?socket=run/x", "nbd+unix:///?socket=/c1/run/x"),
            ("nbd", "nbd+unix:///e/1?socket=x", "nbd+unix:///e/1?socket=/c1/x"),
            ("stack", "raid0( /a,~/b , ram(1M))", "raid0( /a,~/b , ram(1M))"),
            ("nbd", "nbd://host/x", "nbd://host/x"),
            ("zram", "1G", "1G"),
        ] {
            let campaign = subject(key, text);
            assert_eq!(source_in(&campaign, "/c1"), expected, "{key} = {text}");
            let is_changed = text != expected;
            assert_eq!(!campaign.relative_paths().is_empty(), is_changed, "{key} = {text}");
            assert_eq!(campaign.rooted_in(Path::new("/c1")) != campaign, is_changed);
        }
    }

    #[test]
    fn a_blank_in_the_folder_does_not_break_a_stack() {
        let source = source_in(&subject("stack", "raid1(./a, ./b)"), "/my disks, old");
        let stack = Stack::parse(&source).unwrap();
        let paths: Vec<&Path> = stack.member_paths();
        assert_eq!(paths, [Path::new("/my disks, old/a"), Path::new("/my disks, old/b")]);
    }

    #[test]
    fn members_of_templates_are_resolved() {
        let campaign = campaign(
            "",
            "[[member]]\nname = \"a\"\ndevice = \"./a\"\n\
             [[member]]\nname = \"b\"\ndevice = \"raid1(./b, ./c)\"\n\
             [[subject]]\nname = \"s\"\nstack = \"raid0({members})\"\nbaseline = true\n",
        );
        assert!(source_in(&campaign, "/c1").ends_with("/c1/a, raid1(/c1/b, /c1/c))"));
        assert_eq!(campaign.relative_paths(), ["./a", "./b", "./c"]);
    }

    #[test]
    fn where_it_began_is_kept_whoever_goes_on() {
        let first = subject("stack", "./a").rooted_in(Path::new("/c1"));
        let kept = parse_campaign(&render_campaign(&first).unwrap(), "copy").unwrap();
        assert_eq!(kept, first);
        assert_eq!(kept.rooted_in(Path::new("/c2")), first);
        assert_ne!(subject("stack", "./a").rooted_in(Path::new("/c2")), first);
        assert_eq!(source_in(&kept, "/c2"), "/c1/a");
    }

    #[test]
    fn the_directory_itself_must_be_absolute() {
        let text = "name = \"t\"\nworking_dir = \"c1\"\n[[subject]]\nname = \"s\"\n\
                    stack = \"./a\"\nbaseline = true\n[[job]]\npattern = \"rand\"\nop = \"read\"\n\
                    block_size = \"4K\"\n";
        let error = parse_campaign(text, "test").unwrap_err().to_string();
        assert!(error.contains("working_dir") && error.contains("/"), "{error}");
    }
}

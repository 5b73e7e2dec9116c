//! Reports of the laboratory below one folder: found, and read. The kernel resolves each path below the
//! folder, without a link anywhere in it (`openat2`), so that no path leads out, whatever happens meanwhile.
//!
//! Results without a page are listed, too: their page is drawn when it is asked for, by the program, which opens
//! them by their path after it was looked at here.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use serde::Serialize;

/// Depth of the search, and the number of entries.
const DEEPEST: usize = 6;
const MOST_ENTRIES: usize = 10_000;
/// No report is as large.
pub(crate) const LARGEST: u64 = 32 << 20;
/// Results of the laboratory, and the page that it makes of them.
const RESULTS: &str = "results.sqlite";
const PAGE: &str = "report.html";

/// A report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// From the folder.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    /// Milliseconds since 1970.
    pub(crate) modified_ms: u64,
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Reports {
    folder: PathBuf,
    handle: OwnedFd,
}

/// The folder of a path, with the slash; empty for one that is in no other.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// Returns true for the path of results.
fn is_results(path: &str) -> bool {
    &path[folder_of(path).len()..] == RESULTS
}

/// Returns the content type of a file, if it is one that is sent.
pub(crate) fn kind(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "json" => Some("application/json"),
        _ => None,
    }
}

/// Returns true if each part of a path is a plain name that is not hidden.
fn is_plain(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

impl Reports {
    /// Those below `folder`.
    ///
    /// # Errors
    /// It is no folder that can be opened.
    pub(crate) fn below(folder: &Path) -> io::Result<Reports> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Reports { folder: folder.to_owned(), handle })
    }

    /// All of them, the newest first.
    ///
    /// # Errors
    /// The folder cannot be read; folders below it that cannot are passed over.
    pub(crate) fn list(&self) -> io::Result<Vec<Report>> {
        let mut found = Vec::new();
        let mut left = MOST_ENTRIES;
        let mut folders = vec![(self.folder.clone(), String::new(), 0)];
        std::fs::read_dir(&self.folder)?;
        while let Some((folder, below, depth)) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { break };
                left = rest;
                let (Ok(name), Ok(kind_of)) = (entry.file_name().into_string(), entry.file_type())
                else {
                    continue;
                };
                let path = if below.is_empty() { name } else { format!("{below}/{name}") };
                if !is_plain(&path) {
                    continue;
                }
                if kind_of.is_dir() && depth < DEEPEST {
                    folders.push((entry.path(), path, depth + 1));
                } else if kind_of.is_file()
                    && (kind(&path).is_some() || is_results(&path))
                    && let Ok(metadata) = entry.metadata()
                {
                    let modified = metadata
                        .modified()
                        .ok()
                        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                    let modified_ms =
                        modified.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0));
                    found.push(Report { path, size_bytes: metadata.len(), modified_ms });
                }
            }
        }
        let drawn: BTreeSet<String> = found.iter().map(|one| one.path.clone()).collect();
        found.retain(|one| {
            !is_results(&one.path) || !drawn.contains(&format!("{}{PAGE}", folder_of(&one.path)))
        });
        found.sort_by(|one, other| {
            (other.modified_ms, &one.path).cmp(&(one.modified_ms, &other.path))
        });
        Ok(found)
    }

    /// The folder of results at that path, if there are some.
    pub(crate) fn results(&self, path: &str) -> Option<PathBuf> {
        is_results(path).then(|| self.open(path))??;
        self.folder.join(path).parent().map(Path::to_owned)
    }

    /// The file at that path, if there is one.
    fn open(&self, path: &str) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let below = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.handle, path, flags, Mode::empty(), below).ok();
        let file = File::from(is_plain(path).then(open)??);
        file.metadata().ok()?.is_file().then_some(file)
    }

    /// One of them, and what it is sent as. None if there is none at that path.
    pub(crate) fn read(&self, path: &str) -> Option<(Vec<u8>, &'static str)> {
        let (kind, file) = (kind(path)?, self.open(path)?);
        if file.metadata().ok()?.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        Some((bytes, kind))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_out() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("lab");
        std::fs::create_dir_all(folder.join("one/.hidden")).unwrap();
        let secret = outside.path().join("secret.html");
        std::fs::write(&secret, "secret").unwrap();
        std::fs::write(folder.join("one/report.html"), "report").unwrap();
        std::fs::write(folder.join("one/.hidden/x.html"), "hidden").unwrap();
        std::fs::write(folder.join("one/results.sqlite"), "other").unwrap();
        std::fs::create_dir(folder.join("two")).unwrap();
        std::fs::write(folder.join("two/results.sqlite"), "not drawn yet").unwrap();
        std::fs::write(outside.path().join("results.sqlite"), "secret").unwrap();
        symlink(&secret, folder.join("link.html")).unwrap();
        symlink(outside.path(), folder.join("out")).unwrap();
        symlink("one", folder.join("inside")).unwrap();
        let reports = Reports::below(&folder).unwrap();
        let mut listed: Vec<String> =
            reports.list().unwrap().into_iter().map(|one| one.path).collect();
        listed.sort();
        assert_eq!(listed, ["one/report.html", "two/results.sqlite"]);
        assert_eq!(reports.results("two/results.sqlite"), Some(folder.join("two")));
        for path in
            ["out/results.sqlite", "../results.sqlite", "inside/results.sqlite", "two/x.sqlite"]
        {
            assert_eq!(reports.results(path), None, "{path}");
        }
        assert_eq!(reports.read("one/report.html").unwrap().0, b"report");
        let absolute = secret.to_string_lossy().into_owned();
        for path in [
            "../secret.html",
            "one/../../secret.html",
            "one/../one/report.html",
            "link.html",
            "out/secret.html",
            "inside/report.html",
            &absolute,
            "one/.hidden/x.html",
            "one/results.sqlite",
            "one//report.html",
            "",
            "one",
            "one/report.html\0",
            "./one/report.html",
            "%2e%2e/secret.html",
            "one\\report.html",
        ] {
            assert!(reports.read(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.html");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let reports = Reports::below(folder.path()).unwrap();
        assert_eq!((reports.list().unwrap(), reports.read("pipe.html")), (vec![], None));
    }
}

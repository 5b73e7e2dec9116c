//! The contents of a cache, in a file from one start of a volume to the next.
//!
//! ```text
//!   comes up   file ──▶ of this origin? ──▶ its data proved, and the origin not written ──▶ taken
//!                                     └──▶ else: what was held is read anew, beside clients
//!   goes down  drained, flushed ──▶ a proof of the origin's last write ──▶ file, renamed
//! ```
//!
//! Invariants
//! * Data counts only with a proof that the origin was not written since ([`braid_probe::last_change`]).
//! * A file that is something else is never overwritten.
//! * A cache that cannot be saved or read is an empty one: nothing else depends on it.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use braid_cache::Cache;
use braid_cache::warm::{FIXED, Head, Wrong};
use braid_mem::Pool;
use braid_stack::{ByteSize, Stack};
use braid_uring::Handle;

use crate::beside::Beside;
use crate::canary::Canary;

/// The file of a cache, and the origin of the cache.
#[derive(Debug)]
pub struct Warm {
    path: PathBuf,
    has_data: bool,
    /// Identity of the origin.
    identity: String,
    /// The files and devices that it lies on.
    below: Vec<PathBuf>,
    /// Proof of their last write, as it was before the volume wrote them.
    proof: Option<String>,
}

/// Why a file cannot be what a cache is kept in.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    #[error("{} is something else, and is not overwritten", path.display())]
    Foreign { path: PathBuf },
    #[error("{} cannot be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Warm {
    /// Opens the file of a cache in a stack, before its origin is written. `identity` is that of the origin.
    ///
    /// # Errors
    /// [`WarmError`]: nothing was changed.
    pub(super) fn open(
        cache: &braid_stack::Cache,
        identity: &str,
    ) -> Result<Option<Warm>, WarmError> {
        let Some(told) = &cache.warm else { return Ok(None) };
        let path = PathBuf::from(&told.path);
        let io = |source| WarmError::Io { path: path.clone(), source };
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() => return Err(WarmError::Foreign { path }),
            Ok(found) if found.len() > 0 => match read_head(&path).map_err(io)? {
                Err(Wrong::Foreign) => return Err(WarmError::Foreign { path }),
                Ok(_) | Err(Wrong::Damaged) => {}
            },
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(Path::new("/"));
                fs::metadata(folder).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        // The log, too: what is replayed from it is newer than what was kept.
        let log = cache.log().filter(|_| !Canary::LogNotProved.is_planted());
        let below =
            [Some(cache.origin()), log].into_iter().flatten().flat_map(below).collect::<Vec<_>>();
        let (identity, proof) = (identity.to_owned(), proof(&below));
        Ok(Some(Warm { path, has_data: told.has_data, identity, below, proof }))
    }

    /// Has `cache`, which was asked nothing yet, hold what the file says. What has to be read anew is
    /// read while requests come. Answers what is to be told of it.
    pub(super) fn restore(&self, cache: &Cache, handle: &Handle, pool: &Pool) -> Option<String> {
        let file = self.path.display();
        let head = match read_head(&self.path) {
            Ok(Ok(head)) => head,
            Ok(Err(wrong)) => return Some(format!("{file}: {wrong}: the cache is empty")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(format!("{file}: {error}: the cache is empty")),
        };
        let (identity, proof) = head.origin.split_once(BETWEEN).unwrap_or((&head.origin, ""));
        let config = cache.config();
        if identity != self.identity || u64::from(head.block) != config.block {
            return Some(format!("{file} is of another cache: this one is empty"));
        }
        let (_, slots) = cache.used_blocks();
        let skipped = head.kept.len().saturating_sub(slots as usize);
        let is_proved = !proof.is_empty() && self.proof.as_deref() == Some(proof);
        if head.has_data && is_proved {
            return Some(match self.take(cache, &head, skipped) {
                Ok((bytes, 0)) => format!("{file}: {:#} are in the cache", ByteSize(bytes)),
                Ok((bytes, lost)) => format!(
                    "{file}: {:#} are in the cache; {lost} blocks are damaged, and are not",
                    ByteSize(bytes)
                ),
                Err(error) => format!("{file}: {error}: not all of it is in the cache"),
            });
        }
        let why = match head.has_data {
            true => "the origin may have been written since: ",
            false => "",
        };
        let blocks: Vec<u64> = head.kept[skipped..].iter().map(|kept| kept.block).collect();
        let text = format!(
            "{file}: {why}{:#} are read into the cache anew",
            ByteSize(blocks.len() as u64 * config.block)
        );
        let (cache, pool) = (cache.clone(), pool.clone());
        handle.spawn(async move {
            cache.refill(blocks, &pool).await;
        });
        Some(text)
    }

    /// Takes the data of all blocks but the first `skipped`. Answers how many bytes were taken, and how
    /// many blocks were damaged.
    fn take(&self, cache: &Cache, head: &Head, skipped: usize) -> io::Result<(u64, u64)> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(&self.path)?);
        let mut data = vec![0; head.block as usize];
        let start = head.data_offset() + skipped * data.len();
        file.seek(SeekFrom::Start(start as u64))?;
        let (mut bytes, mut lost) = (0, 0);
        for kept in &head.kept[skipped..] {
            file.read_exact(&mut data)?;
            match cache.take(kept, &data) {
                true => bytes += u64::from(head.block),
                false => lost += 1,
            }
        }
        Ok((bytes, lost))
    }

    /// Keeps what `cache`, which is asked nothing any more and has drained all, holds.
    ///
    /// # Errors
    /// The error of the file system: the file is as it was.
    pub(super) fn save(&self, cache: &Cache) -> io::Result<()> {
        let proof = proof(&self.below).unwrap_or_default();
        let left = cache.leave(format!("{}{BETWEEN}{proof}", self.identity), self.has_data);
        // Of a link, what it leads to is replaced.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let new = Beside::create(&path)?;
        let mut file = BufWriter::with_capacity(1 << 20, new.file());
        file.write_all(&left.head().to_bytes())?;
        if self.has_data {
            let mut data = vec![0; left.head().block as usize];
            for index in 0..left.head().kept.len() {
                left.read(index, &mut data);
                file.write_all(&data)?;
            }
        }
        file.flush()?;
        drop(file);
        new.into_place(&path, true).map(drop)
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Separator between the identity of an origin and the proof of its last write.
const BETWEEN: char = '\0';

/// The files and devices that a stack lies on; memory among them is a path that proves nothing.
fn below(stack: &Stack) -> Vec<PathBuf> {
    let path = |leaf: &&Stack| leaf.member_paths().first().map(|path| path.to_path_buf());
    stack.leaves().iter().map(|leaf| path(leaf).unwrap_or_default()).collect()
}

/// Returns the proof of their last write; `None` if one of them has none.
fn proof(below: &[PathBuf]) -> Option<String> {
    let of = |path: &PathBuf| braid_probe::last_change(path).ok().flatten();
    let all: Option<Vec<String>> = below.iter().map(of).collect();
    all.map(|all| all.join("; ")).filter(|text| !text.is_empty())
}

/// The head of a file, or why it has none.
fn read_head(path: &Path) -> io::Result<Result<Head, Wrong>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut bytes = Vec::new();
    (&mut file).take(FIXED as u64).read_to_end(&mut bytes)?;
    let Some(first) = bytes.first_chunk() else { return Ok(Head::parse(&bytes)) };
    match Head::len_of(first) {
        Ok(wanted) if wanted as u64 <= len => {
            file.take((wanted - FIXED) as u64).read_to_end(&mut bytes)?;
            Ok(Head::parse(&bytes))
        }
        Ok(_) => Ok(Err(Wrong::Damaged)),
        Err(wrong) => Ok(Err(wrong)),
    }
}

#[cfg(test)]
mod tests {
    use braid_stack::Node;

    use super::*;

    /// The content of a log is replayed to the origin after the proof was made.
    #[test]
    fn a_write_to_the_origin_or_the_log_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let write = |name: &str, byte: u8| fs::write(file(name), [byte; 8192]).expect("a file");
        ["origin", "log"].iter().for_each(|name| write(name, 1));
        let [kept, log, origin] =
            ["kept", "log", "origin"].map(|name| file(name).display().to_string());
        let stack = format!("cache(size=1M, mode=write-back, warm={kept}, log={log}, {origin})");
        let stack: Stack = stack.parse().expect("a stack");
        let Node::Cache(cache) = &stack.node else { panic!("{stack} is a cache") };
        let proof = || Warm::open(cache, "").expect("files").expect("it is to be kept").proof;
        let before = proof();
        assert_eq!(proof(), before, "nothing was written");
        if before.is_none() {
            return eprintln!(
                "skipped: nothing proves that {} was not written",
                file("").display()
            );
        }
        for name in ["origin", "log"] {
            let before = proof();
            write(name, 2);
            assert_ne!(proof(), before, "{name}");
        }
    }
}

//! `rbd(POOL/IMAGE, …)`: an image of a Ceph cluster.
//!
//! ```text
//!   rbd(POOL/IMAGE)     rbd(POOL/NAMESPACE/IMAGE)     rbd(POOL/IMAGE@SNAPSHOT), to be read
//! ```
//!
//! Deliberately absent: keys. `id` and `conf` name the client and the file that says where its key is.

use std::fmt;

use super::Level;
use super::args::Args;
use super::nbd::{Nbd, deadline};
use crate::error::Fault;
use crate::expr::fmt_word;
use crate::problem::Problem;
use crate::size::Latency;

/// An image of a Ceph cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rbd {
    /// The pool.
    pub pool: String,
    /// The namespace in the pool; empty for the default one.
    pub namespace: String,
    /// The image.
    pub image: String,
    /// The snapshot, if it is one: it can only be read.
    pub snapshot: Option<String>,
    /// Path of the cluster's configuration; `None` for the places where Ceph looks.
    pub conf: Option<String>,
    /// The client's name without `client.`; `None` for `admin`.
    pub id: Option<String>,
    /// Time for which requests wait for an answer before they fail; at least a second.
    pub deadline: Latency,
}

impl Rbd {
    /// Returns the image's name: `POOL/IMAGE@SNAPSHOT`.
    #[must_use]
    pub fn name(&self) -> String {
        let namespace = if self.namespace.is_empty() { "" } else { "/" };
        let at = self.snapshot.as_ref().map_or(String::new(), |name| format!("@{name}"));
        format!("{}/{}{namespace}{}{at}", self.pool, self.namespace, self.image)
    }
}

/// Returns the fault of an image's name, if it has one, and the byte of `name` at which it is.
fn fault_of(name: &str) -> Option<(usize, &'static str)> {
    if let Some(at) = name.find(char::is_control) {
        return Some((at, "it has a control character"));
    }
    let (image, snapshot) = match name.split_once('@') {
        Some((image, snapshot)) => (image, Some(snapshot)),
        None => (name, None),
    };
    if snapshot.is_some_and(|name| name.is_empty() || name.contains(['/', '@'])) {
        return Some((image.len() + 1, "a snapshot's name is not empty and has no / or @"));
    }
    let parts: Vec<&str> = image.split('/').collect();
    if parts.len() < 2 {
        return Some((0, "it names no pool: rbd(POOL/IMAGE)"));
    }
    if parts.len() > 3 {
        let at = parts[..3].join("/").len();
        return Some((at, "it has more parts than POOL/NAMESPACE/IMAGE"));
    }
    let empty = parts.iter().position(|part| part.is_empty())?;
    Some((parts[..empty].iter().map(|part| part.len() + 1).sum(), "a part of it is empty"))
}

impl Level for Rbd {
    const NAME: &'static str = "rbd";
    const USAGE: &'static str =
        "rbd(POOL/IMAGE@SNAPSHOT, conf=FILE, id=CLIENT, deadline=30s), for example rbd(rbd/disk1)";
    const PARAMETERS: &'static [&'static str] = &["conf", "id", "deadline"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let word = args.only("POOL/IMAGE", "the name of an image")?;
        if let Some((at, why)) = fault_of(&word.text) {
            let problem = Problem::BadImage { name: word.text.clone(), why };
            return Err(Fault::new(problem, word.from(at)));
        }
        let (image, snapshot) = match word.text.split_once('@') {
            Some((image, snapshot)) => (image, Some(snapshot.to_owned())),
            None => (&*word.text, None),
        };
        let parts: Vec<String> = image.split('/').map(str::to_owned).collect();
        let (pool, namespace, image) = match <[String; 3]>::try_from(parts) {
            Ok([pool, namespace, image]) => (pool, namespace, image),
            Err(mut two) => {
                let image = two.pop().unwrap_or_default();
                (two.pop().unwrap_or_default(), String::new(), image)
            }
        };
        let id = match args.word("id")? {
            Some(word) if word.text.is_empty() || word.text.contains(['\0', '=']) => {
                let why = "id= is the client's name without client., never a key";
                let problem = Problem::BadImage { name: word.text.clone(), why };
                return Err(Fault::new(problem, word.span));
            }
            word => word.map(|word| word.text.clone()),
        };
        let conf = args.path("conf")?;
        Ok(Rbd { pool, namespace, image, snapshot, conf, id, deadline: deadline(args)? })
    }
}

impl fmt::Display for Rbd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rbd(")?;
        fmt_word(f, &self.name())?;
        for (key, value) in [("conf", &self.conf), ("id", &self.id)] {
            if let Some(value) = value {
                write!(f, ", {key}=")?;
                fmt_word(f, value)?;
            }
        }
        if self.deadline != Nbd::DEFAULT_DEADLINE {
            write!(f, ", deadline={}", self.deadline)?;
        }
        f.write_str(")")
    }
}

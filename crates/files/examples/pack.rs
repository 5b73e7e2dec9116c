//! Writes the sectors of an image that are not zero to standard output: an input for the fuzzer.
//! `testdata/make.sh` calls it.

use std::io::{self, Write};

use braid_files::sparse::Sparse;
use braid_files::{Limits, Owner, ReadAt, owners};

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: pack IMAGE"))?;
    let mut image = std::fs::read(path)?;
    // The content of a log is not read, nor is that of a journal without changes. Other images than those of known file systems are packed as they are.
    let all = 0..image.size();
    let is_dirty = image.get(1024 + 0x60).is_some_and(|features| features & 4 != 0);
    let report = owners(&image, std::slice::from_ref(&all), &Limits::default());
    for piece in report.map(|report| report.pieces).unwrap_or_default() {
        let is_unread = match piece.owner {
            Owner::Metadata("log") => true,
            Owner::Metadata("journal") => !is_dirty,
            _ => false,
        };
        if is_unread {
            image[piece.range.start as usize..piece.range.end as usize].fill(0);
        }
    }
    io::stdout().write_all(&Sparse::pack(&image)?)
}

//! Writes the sectors of an image that are not zero to standard output: an input for the fuzzer.
//! `testdata/make.sh` calls it.

use std::io::{self, Write};

use braid_files::sparse::Sparse;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: pack IMAGE"))?;
    let image = std::fs::read(path)?;
    io::stdout().write_all(&Sparse::pack(&image)?)
}

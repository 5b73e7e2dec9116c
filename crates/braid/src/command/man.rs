//! `braid man`: manual pages, made from what `--help` says.

use std::io::Write;

use clap::CommandFactory;
use clap_mangen::Man as Page;

use crate::cli::{Cli, Man};
use crate::failure::{Context, Failure};

pub(super) fn man(options: &Man) -> Result<(), Failure> {
    let Some(folder) = &options.into else {
        let mut page = Vec::new();
        Page::new(Cli::command()).render(&mut page).context("braid(1)")?;
        return std::io::stdout().write_all(&page).context("standard output");
    };
    clap_mangen::generate_to(Cli::command(), folder).context(folder.display())
}

//! `braid man`: manual pages, made from what `--help` says, and from the documents of docs/.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man as Page;

use crate::cli::{Cli, Man};
use braid_service::failure::{Context, Failure};

mod roff;

pub(super) fn man(options: &Man) -> Result<(), Failure> {
    let Some(folder) = &options.into else {
        let mut page = Vec::new();
        Page::new(command(&options.command)?).render(&mut page).context("a page")?;
        return std::io::stdout().write_all(&page).context("standard output");
    };
    if let Some(docs) = &options.docs {
        documents(docs, folder)?;
    }
    clap_mangen::generate_to(Cli::command(), folder).context(folder.display())
}

/// A command by its words, such as `member fail`.
fn command(words: &[String]) -> Result<clap::Command, Failure> {
    let mut root = Cli::command();
    // Names of pages and options of all commands.
    root.build();
    let mut found = &root;
    for word in words {
        found = found.find_subcommand(word).ok_or_else(|| {
            Failure::usage(format!("there is no command {}", words.join(" ")))
                .next("`braid --help` lists them")
        })?;
    }
    let name = [&["braid".to_owned()], words].concat().join("-");
    Ok(found.clone().display_name(name))
}

/// Writes a page of section 7 for each document.
fn documents(docs: &Path, folder: &Path) -> Result<(), Failure> {
    let cannot_read = format!("cannot read {}", docs.display());
    for entry in std::fs::read_dir(docs).context(&cannot_read)? {
        let path = entry.context(&cannot_read)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        // README.md is the index of the folder.
        let stem = name.and_then(|name| name.strip_suffix(".md")).filter(|stem| *stem != "README");
        let Some(stem) = stem else { continue };
        let text = std::fs::read_to_string(&path).context(path.display())?;
        let name = format!("braid-{stem}");
        let page = roff::page(&name, &text, concat!("braid ", env!("CARGO_PKG_VERSION")));
        let file = folder.join(format!("{name}.7"));
        std::fs::write(&file, page).context(file.display())?;
    }
    Ok(())
}

//! Arguments of the commands on the record of a volume.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Nothing is written to the members. NAME.toml is moved aside, and the \
                        command prints the new path; `braid up` with that file restores the \
                        volume.")]
pub(crate) struct Forget {
    /// Name of the volume, which must be down
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// Name of the volume, which must be down
    pub(crate) name: String,
    /// New name
    #[arg(value_name = "NEW")]
    pub(crate) new_name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

//! What can be typed of what is remembered of a volume.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written to its members. NAME.toml is kept aside, and `forget` says where: `braid up` \
                        with that file brings the volume back."
)]
pub(crate) struct Forget {
    /// The volume's name; it is down
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// The volume's name; it is down
    pub(crate) name: String,
    /// Its name from now on
    #[arg(value_name = "NEW")]
    pub(crate) new_name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

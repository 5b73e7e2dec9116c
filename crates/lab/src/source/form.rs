//! How an array is to come up.

/// In which form an array comes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Without its first member.
    pub(crate) short: bool,
    /// With its parity taken as it is found: it takes the same time to keep up, and nobody will
    /// read anything out of it.
    pub(crate) parity_as_found: bool,
    /// Nothing of the campaign writes to it, and nothing can.
    pub(crate) read_only: bool,
}

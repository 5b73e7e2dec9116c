//! The list of tools.

use super::Tool;

/// Every tool.
pub(super) const TOOLS: &[&dyn Tool] = &[
    &super::fio::Fio,
    &super::hdparm::Hdparm,
    &super::dd::Dd,
    &super::sysbench::Sysbench,
    &super::bonnie::Bonnie,
    &super::copy::UNTAR,
    &super::copy::CP_TREE,
    &super::copy::CP_CACHED,
    &super::copy::CP_READ,
    #[cfg(test)]
    &crate::fixture::Meter,
];

/// The tool with this name.
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

/// Every tool, in the order of lists.
pub fn all() -> impl Iterator<Item = &'static dyn Tool> {
    TOOLS.iter().copied()
}

/// Names of all tools.
pub fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|tool| tool.name()).collect()
}

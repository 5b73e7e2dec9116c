//! The list of tools.

use super::Tool;

/// Every tool.
pub(super) const TOOLS: &[&dyn Tool] = &[
    &super::fio::Fio,
    &super::fio::FioJobs,
    &super::replay::Replay,
    &super::hdparm::Hdparm,
    &super::dd::Dd,
    &super::sysbench::Sysbench,
    &super::bonnie::Bonnie,
    &super::copy::UNTAR,
    &super::copy::CP_TREE,
    &super::copy::CP_CACHED,
    &super::copy::CP_READ,
    &super::command::Command,
];

/// Returns the tool with this name.
pub fn find(name: &str) -> Option<&'static dyn Tool> {
    all().find(|tool| tool.name() == name)
}

/// Returns all tools, in the order of lists.
pub fn all() -> impl Iterator<Item = &'static dyn Tool> {
    let tools = TOOLS.iter().copied();
    #[cfg(feature = "brought-tool")]
    let tools = tools.chain(BROUGHT.get().copied());
    tools
}

/// Returns the names of all tools.
pub fn names() -> Vec<&'static str> {
    all().map(Tool::name).collect()
}

/// The tool that a test has added.
#[cfg(feature = "brought-tool")]
static BROUGHT: std::sync::OnceLock<&'static dyn Tool> = std::sync::OnceLock::new();

/// Adds a tool for tests. One per process: a second one is ignored.
#[cfg(feature = "brought-tool")]
pub fn bring(tool: &'static dyn Tool) {
    BROUGHT.get_or_init(|| tool);
}

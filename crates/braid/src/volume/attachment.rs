//! temporary
use super::Spec;
use super::shard::Shard;
use crate::control::{AttachedStatus, Event};
use braid_block::Limits;
use std::sync::mpsc::Sender;
#[derive(Debug, thiserror::Error)]
#[error("no")]
pub(crate) struct AttachError;
impl AttachError {
    pub(crate) fn holders(&self) -> Vec<String> {
        Vec::new()
    }
}
pub(crate) struct Attached;
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) path: String,
}
impl Facts {
    pub(crate) fn status(&self) -> AttachedStatus {
        unreachable!()
    }
}
impl Attached {
    pub(crate) fn is_possible() -> bool {
        false
    }
    pub(crate) fn attach(
        _: &Spec,
        _: &Shard,
        _: Limits,
        _: Sender<Event>,
    ) -> Result<Attached, AttachError> {
        Err(AttachError)
    }
    pub(crate) fn facts(&self) -> Facts {
        unreachable!()
    }
    pub(crate) fn detach(&mut self, _: bool) -> Result<(), AttachError> {
        Ok(())
    }
}
pub(crate) fn clean_up_after(_: &std::path::Path) -> Result<(), String> {
    Ok(())
}

//! Stacks as trees of modelled devices.

use braid_cache::Config;
use braid_member::profile::{Modelled, modelled};
use braid_predict::{Behind, Offer, Tree};
use braid_stack::{Cache, Model, Node, Stack, WriteBack};

pub(super) fn has_cache(stack: &Stack) -> bool {
    matches!(stack.node, Node::Cache(_)) || stack.members().iter().any(has_cache)
}

/// A stack as what a load can run on.
pub(super) fn tree(stack: &Stack) -> Result<Tree, String> {
    let device = match &stack.node {
        Node::Model(model) => Tree::Device(Box::new(offer(model)?)),
        Node::Ram(ram) => Tree::Device(Box::new(Offer::memory(ram.size.bytes()))),
        Node::File(file) => {
            return Err(format!("{} is no model: model(PROFILE, size=...) is", file.path));
        }
        Node::Cache(cache) => {
            if cache.warm.is_some() {
                return Err("a cache that is warm, with what was asked in another life".to_owned());
            }
            let config = Config {
                size: cache.size.bytes(),
                block: cache.block.bytes(),
                mode: cache.mode,
                policy: cache.policy,
                sequential_cutoff: cache.cutoff.map(|cutoff| cutoff.bytes()),
            };
            Tree::Cached(config, behind(cache)?, Box::new(tree(cache.origin())?))
        }
        _ => {
            let Some(shape) = stack.shape() else { return Err(format!("{stack} is no model")) };
            let member = |one: &Stack| (!one.is_missing()).then(|| tree(one)).transpose();
            Tree::Joined(shape, stack.members().iter().map(member).collect::<Result<_, _>>()?)
        }
    };
    Ok(device)
}

/// The bounds of write-back mode, in that mode.
fn behind(cache: &Cache) -> Result<Option<Behind>, String> {
    let Some(WriteBack { dirty, age, drain }) = cache.write_back else { return Ok(None) };
    if cache.log().is_some() {
        return Err("a cache in write-back mode with a log, which has no model".to_owned());
    }
    if drain.is_some() {
        return Err("a cache that drains at a rate, which has no model".to_owned());
    }
    let dirty = dirty.map_or(cache.size.bytes() / 2, |dirty| dirty.bytes());
    Ok(Some(Behind { dirty, age: age.unwrap_or(Cache::DEFAULT_AGE).duration() }))
}

pub(super) fn offer(model: &Model) -> Result<Offer, String> {
    let Modelled { profile, of_bus } = modelled(model).map_err(|why| why.to_string())?;
    let (name, size, bus) = (model.profile.clone(), model.size.bytes(), model.bus.clone());
    Ok(Offer { name, profile, size, bus, of_bus })
}

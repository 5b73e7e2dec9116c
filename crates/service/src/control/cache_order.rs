//! What an operator asks of a volume's caches while it is up, and what becomes of its stack by that. Pure.

use std::path::Path;

use braid_level::{CacheMode, CachePolicy};
use braid_stack::{ByteSize, Cache, Node, Rate, Stack};

use braid_control::{CacheOrder, OrderAnswer};

/// Why a stack cannot become what an order makes of it, with the next command for the volume `name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuited {
    /// What the parameters are told.
    Parameters(String),
    HasCache,
    NoCache,
    Several,
    NotInFront,
    Memory,
    Mode(String),
    /// It is in write-back mode.
    WriteBack,
    NothingDirty,
    Size {
        least: ByteSize,
    },
}

impl Unsuited {
    /// What becomes of the order, for the volume `name`.
    pub fn answer(&self, name: &str) -> OrderAnswer {
        match self {
            Unsuited::Parameters(_) | Unsuited::Mode(_) | Unsuited::Size { .. } => {
                OrderAnswer::usage(self.text(name))
            }
            Unsuited::HasCache
            | Unsuited::NoCache
            | Unsuited::Several
            | Unsuited::NotInFront
            | Unsuited::Memory
            | Unsuited::WriteBack
            | Unsuited::NothingDirty => OrderAnswer::refused(self.text(name)),
        }
    }

    /// For people.
    pub fn text(&self, name: &str) -> String {
        match self {
            Unsuited::Parameters(text) => text.clone(),
            Unsuited::HasCache => format!(
                "{name} has a cache in front of it already\n  next: `braid cache resize {name} SIZE`; or \
                 `braid cache detach {name}` first"
            ),
            Unsuited::NoCache => format!(
                "{name} has no cache\n  next: `braid cache attach {name} size=SIZE` puts one in front"
            ),
            Unsuited::Several => format!(
                "{name} has several caches, and which one is meant cannot be said\n  next: `braid down \
                 {name}`, and `braid up` with another stack"
            ),
            Unsuited::NotInFront => format!(
                "the cache of {name} is a part of its stack, not in front of it\n  next: `braid down \
                 {name}`, and `braid up` with the stack without it"
            ),
            Unsuited::Memory => format!(
                "{name} is memory itself: a cache would make it slower\n  next: `braid resize {name} SIZE` \
                 gives it more"
            ),
            Unsuited::Mode(mode) => format!(
                "{mode:?} is no mode of a cache: write-through, write-around, write-back\n  next: `braid \
                 cache mode {name} write-through`"
            ),
            Unsuited::WriteBack => format!(
                "{name} is in write-back mode already\n  next: `braid cache mode {name} write-through` \
                 closes its log, and another one may follow"
            ),
            Unsuited::NothingDirty => format!(
                "the cache of {name} is not in write-back mode: there is nothing to drain\n  next: `braid \
                 status {name}`"
            ),
            Unsuited::Size { least } => {
                format!("a cache of {name} has at least a block, {least:#}\n  next: a larger size")
            }
        }
    }
}

/// Sizes of caches are whole sectors, in bytes, as the grammar of stacks has them.
const SECTOR: u64 = 512;

/// What `stack` becomes by `order`.
///
/// # Errors
/// [`Unsuited`].
pub fn apply(order: &CacheOrder, stack: &Stack) -> Result<Stack, Unsuited> {
    let changed = change(order, stack)?;
    let before = paths(stack);
    let come = paths(&changed).into_iter().filter(|path| !before.contains(path));
    // It would be looked for in the folder of the volume's process.
    match come.into_iter().find(|path| !path.is_absolute()) {
        None => Ok(changed),
        Some(path) => Err(Unsuited::Parameters(format!(
            "{:?} is no whole path\n  next: name it from the root, as /var/lib/braid/cache.log",
            path.display().to_string()
        ))),
    }
}

/// The paths that a stack names.
fn paths(stack: &Stack) -> Vec<&Path> {
    let warm = caches_of(stack).into_iter().filter_map(|cache| cache.warm.as_ref());
    stack.member_paths().into_iter().chain(warm.map(|warm| Path::new(&warm.path))).collect()
}

fn change(order: &CacheOrder, stack: &Stack) -> Result<Stack, Unsuited> {
    match order {
        CacheOrder::Attach { parameters, .. } => attached(stack, parameters),
        CacheOrder::Detach => match (&stack.node, caches_of(stack).len()) {
            (Node::Cache(cache), _) => Ok(cache.origin().clone()),
            (_, 0) => Err(Unsuited::NoCache),
            _ => Err(Unsuited::NotInFront),
        },
        CacheOrder::Resize { bytes, .. } => changed(stack, |cache| {
            let (size, least) = (ByteSize(*bytes), cache.block);
            cache.size = size;
            // The stack is written to the record, and read again at the next start.
            if !bytes.is_multiple_of(SECTOR) {
                let text = format!("{bytes} bytes are not a multiple of {SECTOR}");
                return Err(Unsuited::Parameters(text));
            }
            if size < least { Err(Unsuited::Size { least }) } else { Ok(()) }
        }),
        CacheOrder::Drain { bytes_per_second } => changed(stack, |cache| {
            let write_back = cache.write_back.as_mut().ok_or(Unsuited::NothingDirty)?;
            write_back.drain = bytes_per_second.map(Rate);
            Ok(())
        }),
        CacheOrder::Mode { mode, parameters } => {
            let named = CacheMode::ALL.into_iter().find(|one| one.name() == mode);
            let mode = named.ok_or_else(|| Unsuited::Mode(mode.clone()))?;
            if mode == CacheMode::WriteBack {
                return to_write_back(stack, parameters);
            }
            if !parameters.is_empty() {
                let text = format!("{parameters}: {mode} mode has no parameters");
                return Err(Unsuited::Parameters(text));
            }
            changed(stack, |cache| {
                cache.write_back = None;
                cache.devices.truncate(1);
                cache.mode = mode;
                Ok(())
            })
        }
    }
}

/// The cache in front of `stack` in write-back mode, with what only that has.
fn to_write_back(stack: &Stack, parameters: &str) -> Result<Stack, Unsuited> {
    changed(stack, |cache| {
        let (size, block) = (cache.size, cache.block);
        let origin = cache.origin();
        let text = match parameters {
            "" => format!("cache(size={size}, block={block}, mode=write-back, {origin})"),
            more => format!("cache(size={size}, block={block}, mode=write-back, {more}, {origin})"),
        };
        let parsed =
            Stack::parse(&text).map_err(|error| Unsuited::Parameters(error.render(&text)))?;
        if cache.mode == CacheMode::WriteBack {
            return Err(Unsuited::WriteBack);
        }
        let Node::Cache(parsed) = parsed.node else { return Err(Unsuited::NoCache) };
        let Cache { mode, policy, cutoff, write_back, warm, devices, .. } = parsed;
        if policy != CachePolicy::default() || cutoff.is_some() || warm.is_some() {
            let text =
                format!("{parameters}: only log, volatile, dirty, age and drain go with a mode");
            return Err(Unsuited::Parameters(text));
        }
        (cache.mode, cache.write_back, cache.devices) = (mode, write_back, devices);
        Ok(())
    })
    .and_then(|changed| match &stack.node {
        Node::Cache(_) => Ok(changed),
        _ => Err(Unsuited::NotInFront),
    })
}

fn attached(stack: &Stack, parameters: &str) -> Result<Stack, Unsuited> {
    let text = format!("cache({parameters}, {stack})");
    let attached =
        Stack::parse(&text).map_err(|error| Unsuited::Parameters(error.render(&text)))?;
    match &stack.node {
        Node::Cache(_) => return Err(Unsuited::HasCache),
        Node::Ram(_) => return Err(Unsuited::Memory),
        _ => {}
    }
    Ok(attached)
}

/// The stack with its one cache changed by `f`.
fn changed(
    stack: &Stack,
    f: impl FnOnce(&mut Cache) -> Result<(), Unsuited>,
) -> Result<Stack, Unsuited> {
    match caches_of(stack).len() {
        0 => return Err(Unsuited::NoCache),
        1 => {}
        _ => return Err(Unsuited::Several),
    }
    let mut stack = stack.clone();
    match find_cache(&mut stack) {
        Some(cache) => f(cache)?,
        None => return Err(Unsuited::NoCache),
    }
    Ok(stack)
}

fn find_cache(stack: &mut Stack) -> Option<&mut Cache> {
    if matches!(stack.node, Node::Cache(_)) {
        let Node::Cache(cache) = &mut stack.node else { return None };
        return Some(cache);
    }
    stack.members_mut().iter_mut().find_map(find_cache)
}

fn caches_of(stack: &Stack) -> Vec<&Cache> {
    let here = match &stack.node {
        Node::Cache(cache) => Some(cache),
        _ => None,
    };
    here.into_iter().chain(stack.members().iter().flat_map(caches_of)).collect()
}

/// The cache of a stack that has one alone.
pub fn one_cache(stack: &Stack) -> Option<&Cache> {
    match caches_of(stack)[..] {
        [cache] => Some(cache),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(order: &CacheOrder, stack: &str) -> Result<String, Unsuited> {
        let stack = apply(order, &Stack::parse(stack).unwrap())?;
        // What is remembered has to be read again.
        assert_eq!(Stack::parse(&stack.to_string()).unwrap().to_string(), stack.to_string());
        Ok(stack.to_string())
    }

    fn attach(parameters: &str) -> CacheOrder {
        CacheOrder::Attach { parameters: parameters.to_owned() }
    }

    #[test]
    fn a_cache_comes_and_goes() {
        let cached = "cache(size=1M, mode=write-through, a.img)";
        assert_eq!(applied(&attach("size=1M"), "a.img"), Ok(cached.to_owned()));
        assert_eq!(applied(&CacheOrder::Detach, cached), Ok("a.img".to_owned()));
        assert_eq!(applied(&attach("size=1M"), cached), Err(Unsuited::HasCache));
        assert_eq!(applied(&attach("size=1M"), "ram(1M)"), Err(Unsuited::Memory));
        assert_eq!(applied(&CacheOrder::Detach, "a.img"), Err(Unsuited::NoCache));
        let below = "raid1(cache(size=1M, a.img), b.img)";
        assert_eq!(applied(&CacheOrder::Detach, below), Err(Unsuited::NotInFront));
        let back = attach("size=1M, mode=write-back, volatile=yes");
        let written_back = "cache(size=1M, mode=write-back, volatile=yes, a.img)";
        assert_eq!(applied(&back, "a.img"), Ok(written_back.to_owned()));
        for wrong in ["size=1", "", "size=1M, b.img", "size=1M), raid0(c.img", "size=1M, mode=x"] {
            let error = applied(&attach(wrong), "a.img").unwrap_err();
            assert!(matches!(error, Unsuited::Parameters(_)), "{wrong}: {error:?}");
        }
    }

    #[test]
    fn paths_that_come_are_whole() {
        for relative in ["size=1M, warm=w", "size=1M, mode=write-back, log=l.img"] {
            let error = applied(&attach(relative), "a.img").unwrap_err();
            assert!(error.text("v").contains("is no whole path"), "{relative}: {error:?}");
        }
    }

    #[test]
    fn the_one_cache_changes() {
        let resize = |bytes| CacheOrder::Resize { bytes };
        let with = |mode: &str, parameters: &str| CacheOrder::Mode {
            mode: mode.to_owned(),
            parameters: parameters.to_owned(),
        };
        let mode = |name: &str| with(name, "");
        let below = "raid1(cache(size=1M, mode=write-through, a.img), b.img)";
        let larger = "raid1(cache(size=2M, mode=write-through, a.img), b.img)";
        assert_eq!(applied(&resize(2 << 20), below), Ok(larger.to_owned()));
        assert_eq!(applied(&resize(3584), below), Err(Unsuited::Size { least: ByteSize::kib(4) }));
        let odd = applied(&resize((1 << 20) + 1), below);
        assert!(matches!(odd, Err(Unsuited::Parameters(_))), "no stack has that size: {odd:?}");
        let around = "raid1(cache(size=1M, mode=write-around, a.img), b.img)";
        assert_eq!(applied(&mode("write-around"), below), Ok(around.to_owned()));
        let volatile = with("write-back", "volatile=yes");
        assert_eq!(applied(&volatile, below), Err(Unsuited::NotInFront));
        assert_eq!(applied(&mode("fast"), below), Err(Unsuited::Mode("fast".to_owned())));
        let back = "cache(size=1M, mode=write-back, log=/l.img, age=5s, a.img)";
        let through = "cache(size=1M, mode=write-through, a.img)";
        assert_eq!(applied(&mode("write-through"), back), Ok(through.to_owned()));
        let logged = with("write-back", "log=/l.img, age=5s");
        assert_eq!(applied(&logged, through), Ok(back.to_owned()));
        assert_eq!(applied(&logged, back), Err(Unsuited::WriteBack));
        for wrong in ["", "log=/l.img, policy=lru", "log=/l.img, size=2M", "dirty=2M, volatile=yes"]
        {
            let error = applied(&with("write-back", wrong), through).unwrap_err();
            assert!(matches!(error, Unsuited::Parameters(_)), "{wrong}: {error:?}");
        }
        let error = applied(&with("write-around", "log=/l.img"), through).unwrap_err();
        assert!(matches!(error, Unsuited::Parameters(_)), "{error:?}");
        let drain = |bytes_per_second| CacheOrder::Drain { bytes_per_second };
        let held = "cache(size=1M, mode=write-back, log=/l.img, age=5s, drain=1M/s, a.img)";
        assert_eq!(applied(&drain(Some(1 << 20)), back), Ok(held.to_owned()));
        assert_eq!(applied(&drain(None), held), Ok(back.to_owned()));
        assert_eq!(applied(&drain(None), below), Err(Unsuited::NothingDirty));
        let two = "raid1(cache(size=1M, a.img), cache(size=1M, b.img))";
        assert_eq!(applied(&resize(2 << 20), two), Err(Unsuited::Several));
        assert_eq!(applied(&resize(2 << 20), "a.img"), Err(Unsuited::NoCache));
    }
}

//! Orders to the caches of a running volume, and their effect on its stack. Pure.

use std::path::Path;

use braid_level::{CacheMode, CachePolicy};
use braid_stack::{ByteSize, Cache, Node, Rate, Stack};

use braid_control::{CacheOrder, Failure};

use crate::why::Why;

/// Sizes of caches are whole sectors, in bytes, as the grammar of stacks has them.
const SECTOR: u64 = 512;

/// Returns the stack that `order` makes of `stack`.
///
/// # Errors
/// The stack of the volume called `name` cannot become that.
pub fn apply(order: &CacheOrder, stack: &Stack, name: &str) -> Result<Stack, Failure> {
    let changed = change(order, stack, name)?;
    let before = paths(stack);
    let come = paths(&changed).into_iter().filter(|path| !before.contains(path));
    match come.into_iter().find(|path| !path.is_absolute()) {
        None => Ok(changed),
        Some(path) => Err(Why::RelativePath { path: path.display().to_string() }.into()),
    }
}

/// The paths that a stack names.
fn paths(stack: &Stack) -> Vec<&Path> {
    let warm = caches_of(stack).into_iter().filter_map(|cache| cache.warm.as_ref());
    stack.member_paths().into_iter().chain(warm.map(|warm| Path::new(&warm.path))).collect()
}

fn change(order: &CacheOrder, stack: &Stack, name: &str) -> Result<Stack, Failure> {
    let volume = || name.to_owned();
    match order {
        CacheOrder::Attach { parameters, .. } => attached(stack, parameters, name),
        CacheOrder::Detach => match (&stack.node, caches_of(stack).len()) {
            (Node::Cache(cache), _) => Ok(cache.origin().clone()),
            (_, 0) => Err(Why::NoCache { volume: volume() }.into()),
            _ => Err(Why::CacheInside { volume: volume() }.into()),
        },
        CacheOrder::Resize { bytes, .. } => changed(stack, name, |cache| {
            let (size, least) = (ByteSize(*bytes), cache.block);
            cache.size = size;
            // The stack is written to the record, and read again at the next start.
            if !bytes.is_multiple_of(SECTOR) {
                return Err(Failure::usage(format!(
                    "{bytes} bytes are not a multiple of {SECTOR}"
                ))
                .next("a size in whole KiB"));
            }
            match size < least {
                true => {
                    Err(Why::BelowBlock { volume: volume(), least_bytes: least.bytes() }.into())
                }
                false => Ok(()),
            }
        }),
        CacheOrder::Drain { bytes_per_second } => changed(stack, name, |cache| {
            let write_back = cache.write_back.as_mut();
            let write_back = write_back.ok_or_else(|| Why::NotWriteBack { volume: volume() })?;
            write_back.drain = bytes_per_second.map(Rate);
            Ok(())
        }),
        CacheOrder::Mode { mode, parameters } => {
            let named = CacheMode::ALL.into_iter().find(|one| one.name() == mode);
            let mode = named.ok_or_else(|| Why::NoMode { volume: volume(), mode: mode.clone() })?;
            if mode == CacheMode::WriteBack {
                return to_write_back(stack, parameters, name);
            }
            if !parameters.is_empty() {
                let text = format!("{parameters}: {mode} mode has no parameters");
                return Err(Failure::usage(text));
            }
            changed(stack, name, |cache| {
                cache.write_back = None;
                cache.devices.truncate(1);
                cache.mode = mode;
                Ok(())
            })
        }
    }
}

/// The cache in front of `stack` in write-back mode, with what only that has.
fn to_write_back(stack: &Stack, parameters: &str, name: &str) -> Result<Stack, Failure> {
    let volume = || name.to_owned();
    changed(stack, name, |cache| {
        let (size, block) = (cache.size, cache.block);
        let origin = cache.origin();
        let text = match parameters {
            "" => format!("cache(size={size}, block={block}, mode=write-back, {origin})"),
            more => format!("cache(size={size}, block={block}, mode=write-back, {more}, {origin})"),
        };
        let parsed = Stack::parse(&text).map_err(|error| Failure::usage(error.render(&text)))?;
        if cache.mode == CacheMode::WriteBack {
            return Err(Why::WriteBackAlready { volume: volume() }.into());
        }
        let Node::Cache(parsed) = parsed.node else {
            return Err(Why::NoCache { volume: volume() }.into());
        };
        let Cache { mode, policy, cutoff, write_back, warm, devices, .. } = parsed;
        if policy != CachePolicy::default() || cutoff.is_some() || warm.is_some() {
            let text =
                format!("{parameters}: only log, volatile, dirty, age and drain go with a mode");
            return Err(Failure::usage(text));
        }
        (cache.mode, cache.write_back, cache.devices) = (mode, write_back, devices);
        Ok(())
    })
    .and_then(|changed| match &stack.node {
        Node::Cache(_) => Ok(changed),
        _ => Err(Why::CacheInside { volume: volume() }.into()),
    })
}

fn attached(stack: &Stack, parameters: &str, name: &str) -> Result<Stack, Failure> {
    let volume = || name.to_owned();
    let text = format!("cache({parameters}, {stack})");
    let attached = Stack::parse(&text).map_err(|error| Failure::usage(error.render(&text)))?;
    match &stack.node {
        Node::Cache(_) => return Err(Why::HasCache { volume: volume() }.into()),
        Node::Ram(_) => return Err(Why::IsMemory { volume: volume() }.into()),
        _ => {}
    }
    Ok(attached)
}

/// The stack with its one cache changed by `f`.
fn changed(
    stack: &Stack,
    name: &str,
    f: impl FnOnce(&mut Cache) -> Result<(), Failure>,
) -> Result<Stack, Failure> {
    if caches_of(stack).len() > 1 {
        return Err(Why::SeveralCaches { volume: name.to_owned() }.into());
    }
    let mut stack = stack.clone();
    match find_cache(&mut stack) {
        Some(cache) => f(cache)?,
        None => return Err(Why::NoCache { volume: name.to_owned() }.into()),
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
    use braid_control::ErrorCode;

    use super::*;

    fn applied(order: &CacheOrder, stack: &str) -> Result<String, ErrorCode> {
        let stack = apply(order, &Stack::parse(stack).unwrap(), "v");
        let stack = stack.map_err(|failure| failure.code)?;
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
        assert_eq!(applied(&attach("size=1M"), cached), Err(ErrorCode::HasCache));
        assert_eq!(applied(&attach("size=1M"), "ram(1M)"), Err(ErrorCode::IsMemory));
        assert_eq!(applied(&CacheOrder::Detach, "a.img"), Err(ErrorCode::NoCache));
        let below = "raid1(cache(size=1M, a.img), b.img)";
        assert_eq!(applied(&CacheOrder::Detach, below), Err(ErrorCode::CacheInside));
        let back = attach("size=1M, mode=write-back, volatile=yes");
        let written_back = "cache(size=1M, mode=write-back, volatile=yes, a.img)";
        assert_eq!(applied(&back, "a.img"), Ok(written_back.to_owned()));
        for wrong in ["size=1", "", "size=1M, b.img", "size=1M), raid0(c.img", "size=1M, mode=x"] {
            let error = applied(&attach(wrong), "a.img").unwrap_err();
            assert_eq!(error, ErrorCode::BadRequest, "{wrong}");
        }
    }

    #[test]
    fn paths_that_come_are_whole() {
        for relative in ["size=1M, warm=w", "size=1M, mode=write-back, log=l.img"] {
            let stack = Stack::parse("a.img").unwrap();
            let failure = apply(&attach(relative), &stack, "v").unwrap_err();
            assert!(failure.why.ends_with("is no whole path"), "{relative}: {failure:?}");
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
        assert_eq!(applied(&resize(3584), below), Err(ErrorCode::BadRequest));
        assert_eq!(applied(&resize((1 << 20) + 1), below), Err(ErrorCode::BadRequest));
        let around = "raid1(cache(size=1M, mode=write-around, a.img), b.img)";
        assert_eq!(applied(&mode("write-around"), below), Ok(around.to_owned()));
        let volatile = with("write-back", "volatile=yes");
        assert_eq!(applied(&volatile, below), Err(ErrorCode::CacheInside));
        assert_eq!(applied(&mode("fast"), below), Err(ErrorCode::BadRequest));
        let back = "cache(size=1M, mode=write-back, log=/l.img, age=5s, a.img)";
        let through = "cache(size=1M, mode=write-through, a.img)";
        assert_eq!(applied(&mode("write-through"), back), Ok(through.to_owned()));
        let logged = with("write-back", "log=/l.img, age=5s");
        assert_eq!(applied(&logged, through), Ok(back.to_owned()));
        assert_eq!(applied(&logged, back), Err(ErrorCode::WriteBackAlready));
        for wrong in ["", "log=/l.img, policy=lru", "log=/l.img, size=2M", "dirty=2M, volatile=yes"]
        {
            let error = applied(&with("write-back", wrong), through).unwrap_err();
            assert_eq!(error, ErrorCode::BadRequest, "{wrong}");
        }
        let error = applied(&with("write-around", "log=/l.img"), through).unwrap_err();
        assert_eq!(error, ErrorCode::BadRequest);
        let drain = |bytes_per_second| CacheOrder::Drain { bytes_per_second };
        let held = "cache(size=1M, mode=write-back, log=/l.img, age=5s, drain=1M/s, a.img)";
        assert_eq!(applied(&drain(Some(1 << 20)), back), Ok(held.to_owned()));
        assert_eq!(applied(&drain(None), held), Ok(back.to_owned()));
        assert_eq!(applied(&drain(None), below), Err(ErrorCode::NotWriteBack));
        let two = "raid1(cache(size=1M, a.img), cache(size=1M, b.img))";
        assert_eq!(applied(&resize(2 << 20), two), Err(ErrorCode::SeveralCaches));
        assert_eq!(applied(&resize(2 << 20), "a.img"), Err(ErrorCode::NoCache));
    }
}

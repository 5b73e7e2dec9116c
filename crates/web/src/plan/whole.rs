//! What is said of orders for a volume as a whole, for its caches, and of its end.

use braid_control::{CacheOrder, Failure, Status, WholeOrder};

use super::Said;

/// What an order does to a volume as a whole.
pub(super) fn whole(status: &Status, order: &WholeOrder) -> Said {
    let name = &status.name;
    let users = match status.device_export() {
        Some(device) => format!(" Whatever uses {} gets errors when it writes.", device.address),
        None if status.connections() > 0 => " Its clients get errors when they write.".to_owned(),
        None => String::new(),
    };
    let ram = || match status.rams.as_slice() {
        [] => Err(Failure::refused(format!("{name} is no RAM disk"))),
        _ => Ok(()),
    };
    match order {
        WholeOrder::Lock { .. } if status.device.locked => {
            Err(Failure::refused(format!("{name} is locked already")))
        }
        WholeOrder::Lock { .. } => Ok((
            format!("Refuses writes to {name} until it is unlocked; reads go on."),
            (!users.is_empty()).then(|| users.trim().to_owned()),
        )),
        WholeOrder::Unlock if !status.device.locked => {
            Err(Failure::refused(format!("{name} is not locked")))
        }
        WholeOrder::Unlock => Ok((format!("Lets {name} be written to again."), None)),
        WholeOrder::Erase { .. } => {
            ram()?;
            Ok((
                format!("Forgets all that {name} holds, and gives its memory back."),
                Some("All of its content is lost.".to_owned()),
            ))
        }
        WholeOrder::Resize { bytes, .. } => {
            ram()?;
            let smaller = *bytes < status.device.size_bytes;
            Ok((
                format!("Gives {name} {bytes} bytes instead of {}.", status.device.size_bytes),
                smaller
                    .then(|| "It is refused where something was written beyond that.".to_owned()),
            ))
        }
        WholeOrder::Save { file, force } => Ok((
            format!(
                "Writes the content of {name} to {}, compressed; writes wait or are refused meanwhile.",
                file.display()
            ),
            force.then(|| format!("{} is replaced, if it is there.", file.display())),
        )),
        WholeOrder::Restore { file, .. } => Ok((
            format!(
                "Takes the content of {name} from {}, after all of that was checked.",
                file.display()
            ),
            Some(format!("What {name} holds now is overwritten.")),
        )),
    }
}

/// What an order does to its caches.
pub(super) fn cache(status: &Status, order: &CacheOrder) -> Said {
    let name = &status.name;
    let dirty: u64 = status
        .caches
        .iter()
        .filter_map(|one| one.write_back.as_ref())
        .map(|one| one.dirty_bytes)
        .sum();
    let has_one = || match status.caches.is_empty() {
        true => Err(Failure::refused(format!("{name} has no cache")).next("attach one")),
        false => Ok(()),
    };
    let done = |text: String| Ok((text, None));
    match order {
        CacheOrder::Attach { parameters, .. } => {
            let volatile = parameters.contains("write-back") && parameters.contains("volatile");
            Ok((
                format!(
                    "Puts a cache ({parameters}) in front of {name}; nobody waits for it. It stays until it is detached."
                ),
                volatile.then(|| {
                    "What it has not written yet is lost with a power cut or a crash.".to_owned()
                }),
            ))
        }
        CacheOrder::Detach => {
            has_one()?;
            done(format!(
                "Takes the cache in front of {name} off; the {dirty} bytes that are not written yet are written first."
            ))
        }
        CacheOrder::Resize { bytes, .. } => {
            has_one()?;
            done(format!(
                "Gives the cache {bytes} bytes of memory; what would leave first leaves first."
            ))
        }
        CacheOrder::Mode { mode, .. } => {
            has_one()?;
            done(format!(
                "Has the cache treat writes as {mode} does; what is dirty is drained first."
            ))
        }
        CacheOrder::Drain { bytes_per_second } => {
            has_one()?;
            let rate = bytes_per_second
                .map_or("nothing".to_owned(), |rate| format!("{rate} bytes a second"));
            done(format!("Holds what the cache drains to {rate}, while there is time."))
        }
    }
}

/// What the end of a volume means; one that does not answer says nothing of itself.
pub(crate) fn stop(name: &str, status: Option<&Status>, force: bool) -> (String, Option<String>) {
    let Some(status) = status else {
        let does = format!("Ends what is left of {name}, and removes what it left.");
        return (does, Some("What was being written and was not flushed may be lost.".to_owned()));
    };
    let device = status.device_export().map(|device| format!("{} goes away, ", device.address));
    let does = format!(
        "Ends {name}: {}what is under way is answered and flushed. It can be brought up again.",
        device.unwrap_or_default()
    );
    let mut loses = Vec::new();
    if status.device.volatile {
        loses.push(
            "Its content is lost: it is in memory alone, unless it is saved to an image."
                .to_owned(),
        );
    }
    match (force, status.device_export(), status.connections()) {
        (true, Some(_), _) => {
            loses.push("The device is taken away from whoever uses it.".to_owned())
        }
        (false, Some(_), _) => {
            loses.push("It is refused while anybody uses the device.".to_owned())
        }
        (_, None, 0) => {}
        (_, None, clients) => loses.push(format!("Connections of clients end: {clients}.")),
    }
    (does, (!loses.is_empty()).then(|| loses.join(" ")))
}

//! Runs whose panics are their results, and are not printed.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The message of the panic in progress.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// True if this thread is in [`quietly`].
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; a panic, which is not printed, is an error.
pub fn quietly<T>(
    body: impl FnOnce() -> std::result::Result<T, String>,
) -> std::result::Result<T, String> {
    PANIC.with(|slot| *slot.borrow_mut() = None);
    let was_quiet = IS_QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    IS_QUIET.set(was_quiet);
    result.unwrap_or_else(|_| {
        let what = PANIC.with(|slot| slot.borrow_mut().take());
        Err(format!("panic: {}", what.unwrap_or_else(|| "it gave no reason".to_owned())))
    })
}

/// Has panics within [`quietly`] kept for it instead of printed; others are printed as before.
pub fn keep_panics() {
    let otherwise = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !IS_QUIET.get() {
            return otherwise(info);
        }
        let place = info.location().map_or(String::new(), |place| format!(" ({place})"));
        let payload = info.payload();
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no reason is given");
        let mut what = format!("{text}{place}");
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            what = format!("{what}\n{}", std::backtrace::Backtrace::capture());
        }
        // The first one: what follows from it may panic as well.
        PANIC.with(|slot| slot.borrow_mut().get_or_insert(what).len());
    }));
}

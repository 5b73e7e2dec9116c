//! A clock that makes a cache step aside and return all the time.

use std::cell::RefCell;
use std::pin::Pin;
use std::time::Duration;

use braid_cache::Rules;
use braid_engine::Clock;
use braid_seed::Rng;

/// Advances by a random time whenever it is read.
pub(crate) struct Whimsical(RefCell<(Duration, u64, Rng)>);

impl Whimsical {
    pub(crate) fn new(dice: Rng) -> Whimsical {
        Whimsical(RefCell::new((Duration::ZERO, 1, dice)))
    }

    /// Returns rules that make the cache change its state as often as possible.
    pub(crate) fn rules() -> Rules {
        let little = Duration::from_nanos(100);
        Rules { interval: little, pause: little, reads: 4 }
    }
}

impl Clock for Whimsical {
    fn now(&self) -> Duration {
        let (now, longest, dice) = &mut *self.0.borrow_mut();
        if dice.percent(20) {
            *longest = 10u64.pow(dice.index(6) as u32);
        }
        *now += Duration::from_nanos(dice.below(*longest + 1));
        *now
    }

    fn unix_time(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _duration: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::ready(()))
    }
}

//! Members that went away and came back: they are re-added, reported, or left out.
//!
//! ```text
//!            path leads elsewhere, or nowhere          policy
//!   works ──▶ away ──▶ there again, of this array ──▶ auto    re-add   ──▶ works
//!     │                                               ask     report
//!     │                                               never
//!     ├─ an operator takes it out ──▶ out             it never comes back by itself
//!     └─ fails, and its device stays ──▶              it never comes back by itself
//! ```
//!
//! Invariants
//! * Pure: observations and the time are arguments.
//! * A member that an operator took out, or that failed while its device stayed, is never looked for.
//! * A member that came back [`LIMIT`] times [`WITHIN`] an hour is left out until an operator re-adds it.
//!
//! Deliberately absent: the decision if a member may come back, which compares its superblock with the array's
//! (`newcomer`), and the observations (`watcher`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_shell::shell_path;

use super::spec::ReAdd;

/// Returns of a member within [`WITHIN`] after which it is left out.
const LIMIT: usize = 3;
/// The time in which returns are counted.
const WITHIN: Duration = Duration::from_secs(60 * 60);
/// Time after a refusal until the next try: udev may look at a device that was just plugged in.
const RETRY: Duration = Duration::from_secs(30);

/// The standing of a member in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes part, or is filled, or waits as a spare.
    Works,
    /// It answered with errors.
    Faulty,
    /// It is faulty because its device went away.
    DeviceWent,
    /// An operator took it out.
    OutByOrder,
    /// The array does not have it; whether it was there when the volume came up.
    Absent { was_there: bool },
}

/// One observation of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// As the stack spells it.
    pub(super) member: String,
    pub(super) standing: Standing,
    /// Identity of the object at its path: another text for another device, or for the same plugged in again.
    pub(super) place: Option<String>,
    /// The array lacks a member.
    pub(super) is_short: bool,
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Remove what is left of `member`, and re-add the device at `at`: by the bitmap, or as the spare that it was.
    ReAdd { member: String, at: Back },
    /// A line for the array's log.
    Note { member: String, text: String },
}

/// A device that carries what a member carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Back {
    pub(super) path: PathBuf,
    /// It was a spare.
    pub(super) is_spare: bool,
}

/// A message about a member, until its state changes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum News {
    Back(Back),
    /// Another member has its role by now.
    NotNeeded(PathBuf),
    Refused(PathBuf, String),
    LeftOut(PathBuf),
}

/// A device that carries what the member carried. It is looked at once only, since it may be asleep.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    at: Back,
    when: Duration,
    /// Identity of the object at the member's path then.
    place: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct One {
    /// Identity of the object at its path when it worked.
    opened: Option<String>,
    /// Its device went away.
    is_away: bool,
    /// An operator took it out.
    is_out: bool,
    is_left_out: bool,
    returns: Vec<Duration>,
    tried: Option<Duration>,
    found: Option<Found>,
    news: Option<News>,
}

/// The memory of all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Returning {
    policy: ReAdd,
    members: BTreeMap<String, One>,
}

impl Returning {
    pub(super) fn new(policy: ReAdd) -> Returning {
        Returning { policy, members: BTreeMap::new() }
    }

    /// Takes note of observations. `find` looks for the device that carries a member's contents; it is called only for
    /// members that may come back.
    pub(super) fn look(
        &mut self,
        now: Duration,
        sights: &[Sight],
        find: &mut dyn FnMut(&str) -> Option<Back>,
    ) -> Vec<Act> {
        self.members.retain(|name, _| sights.iter().any(|sight| sight.member == *name));
        sights.iter().flat_map(|sight| self.see(now, sight, find)).collect()
    }

    fn see(
        &mut self,
        now: Duration,
        sight: &Sight,
        find: &mut dyn FnMut(&str) -> Option<Back>,
    ) -> Vec<Act> {
        let one = self.members.entry(sight.member.clone()).or_default();
        one.see(sight);
        let may_return = sight.standing != Standing::Works && one.is_away && !one.is_out;
        if !may_return || self.policy == ReAdd::Never {
            (one.found, one.news, one.tried) = (None, None, None);
            return Vec::new();
        }
        let holds =
            |found: &&Found| found.place == sight.place && now.saturating_sub(found.when) < RETRY;
        let known = one.found.as_ref().filter(holds).map(|found| found.at.clone());
        let Some(at) = known.or_else(|| {
            let at = find(&sight.member)?;
            one.found = Some(Found { at: at.clone(), when: now, place: sight.place.clone() });
            Some(at)
        }) else {
            (one.found, one.news, one.tried) = (None, None, None);
            return Vec::new();
        };
        one.returns.retain(|then| now.saturating_sub(*then) < WITHIN);
        if !sight.is_short && !at.is_spare {
            one.news = Some(News::NotNeeded(at.path));
        } else if self.policy == ReAdd::Ask {
            one.news = Some(News::Back(at));
        } else if one.is_left_out || one.returns.len() >= LIMIT {
            let member = sight.member.clone();
            let text = format!("{member} {}", flaps());
            let is_new = !std::mem::replace(&mut one.is_left_out, true);
            one.news = Some(News::LeftOut(at.path));
            return Vec::from_iter(is_new.then_some(Act::Note { member, text }));
        } else if one.tried.is_none_or(|then| now.saturating_sub(then) >= RETRY) {
            one.tried = Some(now);
            return vec![Act::ReAdd { member: sight.member.clone(), at }];
        }
        Vec::new()
    }

    /// Takes in the result of [`Act::ReAdd`].
    pub(super) fn done(
        &mut self,
        now: Duration,
        member: &str,
        at: &Path,
        result: Result<(), String>,
    ) {
        let mut one = self.members.remove(member).unwrap_or_default();
        let mut name = member.to_owned();
        match result {
            Ok(()) => {
                one.returns.push(now);
                one = One { returns: one.returns, ..One::default() };
                name = at.display().to_string();
            }
            Err(why) => one.news = Some(News::Refused(at.to_owned(), why)),
        }
        self.members.insert(name, one);
    }

    /// An operator let go of a member.
    pub(super) fn let_go(&mut self, member: &str) {
        self.members.entry(member.to_owned()).or_default().is_out = true;
    }

    /// The member on the device that is called `device` now, by the identity that lay at its path.
    pub(super) fn on(&self, is_it: impl Fn(&str) -> bool) -> Option<&str> {
        let has = |one: &One| one.opened.as_deref().is_some_and(&is_it);
        self.members.iter().find(|(_, one)| has(one)).map(|(name, _)| name.as_str())
    }

    /// Returns the messages about `volume`, a line each.
    pub(super) fn says(&self, volume: &str) -> Vec<String> {
        let one = |(name, one): (&String, &One)| Some(one.news.as_ref()?.says(volume, name));
        self.members.iter().filter_map(one).collect()
    }

    /// The command that leads on, if there is one.
    pub(super) fn next(&self, volume: &str) -> Option<String> {
        self.members.values().find_map(|one| one.news.as_ref()?.next(volume))
    }
}

impl One {
    fn see(&mut self, sight: &Sight) {
        let is_elsewhere = match (&sight.place, &self.opened) {
            (None, _) => true,
            (Some(place), Some(opened)) => place != opened,
            (Some(_), None) => false,
        };
        match sight.standing {
            Standing::Works => {
                let opened = self.opened.take().or_else(|| sight.place.clone());
                let returns = std::mem::take(&mut self.returns);
                *self = One { opened, returns, is_away: is_elsewhere, ..One::default() };
            }
            Standing::Faulty => self.is_away |= is_elsewhere,
            Standing::DeviceWent => self.is_away = true,
            Standing::OutByOrder => self.is_out = true,
            Standing::Absent { was_there } => self.is_away |= is_elsewhere || !was_there,
        }
    }
}

fn flaps() -> String {
    format!("went away and came back {} times within an hour: it is left out", LIMIT + 1)
}

impl News {
    fn says(&self, volume: &str, member: &str) -> String {
        let moved = |at: &Path| match at.display().to_string() {
            path if path == member => member.to_owned(),
            path => format!("{member} (now {path})"),
        };
        match self {
            News::Back(at) => {
                let next = self.next(volume).unwrap_or_default();
                format!("{} is back: {next}", moved(&at.path))
            }
            News::NotNeeded(at) => format!(
                "{} is back, and the array has all of its members: `braid member add {} {}` makes it a spare",
                moved(at),
                volume,
                shell_path(at)
            ),
            News::Refused(at, why) => format!("{} is back, and was not re-added: {why}", moved(at)),
            News::LeftOut(at) => {
                let next = self.next(volume).unwrap_or_default();
                format!("{} {}; look at its cable and its power, then {next}", moved(at), flaps())
            }
        }
    }

    fn next(&self, volume: &str) -> Option<String> {
        let (how, at) = match self {
            News::Back(Back { path, is_spare: true }) | News::Refused(path, _) => ("add", path),
            News::Back(Back { path, .. }) | News::LeftOut(path) => ("re-add", path),
            News::NotNeeded(_) => return None,
        };
        Some(format!("`braid member {how} {volume} {}` takes it in again", shell_path(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: &str = "/dev/b";

    fn sight(standing: Standing, place: Option<&str>) -> Sight {
        let place = place.map(str::to_owned);
        Sight { member: MEMBER.to_owned(), standing, place, is_short: standing != Standing::Works }
    }

    fn back(path: &str) -> Back {
        Back { path: path.into(), is_spare: false }
    }

    /// One look a second; the device carries the array's superblock wherever something is.
    struct World {
        returning: Returning,
        now: Duration,
    }

    impl World {
        fn new(policy: ReAdd) -> World {
            World { returning: Returning::new(policy), now: Duration::ZERO }
        }

        fn look(&mut self, standing: Standing, place: Option<&str>) -> Vec<Act> {
            self.now += Duration::from_secs(1);
            let mut find = |member: &str| place.map(|_| back(member));
            self.returning.look(self.now, &[sight(standing, place)], &mut find)
        }

        /// The same, and what is asked for is done.
        fn comes_back(&mut self, standing: Standing, place: Option<&str>) -> bool {
            let acts = self.look(standing, place);
            let is_asked = acts == [Act::ReAdd { member: MEMBER.into(), at: back(MEMBER) }];
            if is_asked {
                self.returning.done(self.now, MEMBER, Path::new(MEMBER), Ok(()));
            }
            is_asked
        }

        fn says(&self) -> String {
            self.returning.says("home").join("\n")
        }
    }

    /// All stories of four looks: it is re-added only where it was away and no operator took it out.
    #[test]
    fn who_comes_back_was_away_and_nobody_took_it_out() {
        use Standing::{DeviceWent, Faulty, OutByOrder, Works};
        let places = [None, Some("one"), Some("two")];
        let standings =
            [Works, Faulty, DeviceWent, OutByOrder, Standing::Absent { was_there: true }];
        let looks: Vec<(Standing, Option<&str>)> =
            standings.iter().flat_map(|one| places.map(|place| (*one, place))).collect();
        let mut returned = 0;
        for story in 0..looks.len().pow(4) {
            let mut world = World::new(ReAdd::Auto);
            let (mut rest, mut opened, mut was_away, mut is_out) = (story, None, false, false);
            let mut times = 0;
            for _ in 0..4 {
                let (standing, place) = looks[rest % looks.len()];
                rest /= looks.len();
                let is_elsewhere = place.is_none() || opened.is_some_and(|one| Some(one) != place);
                match standing {
                    Works => {
                        opened = opened.or(place);
                        (was_away, is_out) = (place.is_none() || opened != place, false);
                    }
                    OutByOrder => is_out = true,
                    DeviceWent => was_away = true,
                    _ => was_away |= is_elsewhere,
                }
                let may = standing != Works && was_away && !is_out && place.is_some();
                let expected = may && times < LIMIT;
                let is_back = world.comes_back(standing, place);
                assert_eq!(is_back, expected, "{story}: {standing:?} {place:?}");
                if is_back {
                    (returned, times) = (returned + 1, times + 1);
                    (opened, was_away) = (None, false);
                }
            }
        }
        assert!(returned > 1000, "{returned}");
    }

    #[test]
    fn what_failed_where_it_is_stays_out() {
        let mut world = World::new(ReAdd::Auto);
        assert!(world.look(Standing::Works, Some("one")).is_empty());
        for _ in 0..10 {
            assert!(world.look(Standing::Faulty, Some("one")).is_empty());
        }
        // Then it is unplugged and plugged in.
        assert!(world.look(Standing::Faulty, None).is_empty());
        assert!(world.comes_back(Standing::Faulty, Some("one")));
    }

    #[test]
    fn a_member_that_was_late_comes_in_and_one_that_was_left_out_does_not() {
        let mut late = World::new(ReAdd::Auto);
        assert!(late.comes_back(Standing::Absent { was_there: false }, Some("one")));
        let mut stale = World::new(ReAdd::Auto);
        assert!(stale.look(Standing::Absent { was_there: true }, Some("one")).is_empty());
    }

    #[test]
    fn an_operator_s_word_holds_though_the_device_goes_and_comes() {
        let mut world = World::new(ReAdd::Auto);
        world.look(Standing::Works, Some("one"));
        world.returning.let_go(MEMBER);
        for place in [None, Some("one"), None, Some("two")] {
            assert!(world.look(Standing::Absent { was_there: false }, place).is_empty());
        }
        world.look(Standing::Works, Some("two"));
        world.look(Standing::Faulty, None);
        assert!(world.comes_back(Standing::Faulty, Some("two")), "it was taken in since");
    }

    #[test]
    fn the_policies() {
        for (policy, back, says) in [
            (ReAdd::Auto, true, ""),
            (ReAdd::Ask, false, "/dev/b is back: `braid member re-add home /dev/b`"),
            (ReAdd::Never, false, ""),
        ] {
            let mut world = World::new(policy);
            world.look(Standing::Works, Some("one"));
            world.look(Standing::Faulty, None);
            assert_eq!(world.comes_back(Standing::Faulty, Some("two")), back);
            assert!(world.says().starts_with(says), "{}", world.says());
            assert_eq!(world.says().is_empty(), says.is_empty());
            world.look(Standing::Faulty, None);
            assert_eq!(world.says(), "", "no member is there any more");
        }
    }

    #[test]
    fn a_flapping_member_is_left_out_and_said_once() {
        let mut world = World::new(ReAdd::Auto);
        for _ in 0..LIMIT {
            world.look(Standing::Works, Some("one"));
            world.look(Standing::Faulty, None);
            assert!(world.comes_back(Standing::Faulty, Some("one")));
        }
        world.look(Standing::Works, Some("one"));
        world.look(Standing::Faulty, None);
        let acts = world.look(Standing::Faulty, Some("one"));
        assert!(
            matches!(&acts[..], [Act::Note { text, .. }] if text.contains("4 times")),
            "{acts:?}"
        );
        world.now += WITHIN;
        assert!(world.look(Standing::Faulty, Some("one")).is_empty(), "also when the hour is over");
        assert!(world.says().contains("left out"), "{}", world.says());
        // An operator takes it in: it counts anew an hour later.
        world.look(Standing::Works, Some("one"));
        assert_eq!(world.says(), "");
        world.look(Standing::Faulty, None);
        assert!(world.comes_back(Standing::Faulty, Some("one")));
    }

    #[test]
    fn a_refusal_is_told_and_tried_again_later() {
        let mut world = World::new(ReAdd::Auto);
        world.look(Standing::Faulty, None);
        assert_eq!(world.look(Standing::Faulty, Some("one")).len(), 1);
        let refused = Err("it is in use".to_owned());
        world.returning.done(world.now, MEMBER, Path::new(MEMBER), refused);
        assert!(world.says().contains("was not re-added: it is in use"));
        let again = |world: &mut World| world.look(Standing::Faulty, Some("one")).len();
        assert_eq!(again(&mut world), 0);
        assert!(world.says().contains("in use"), "it is still said");
        world.now += RETRY;
        assert_eq!(again(&mut world), 1);
        // Another device is another matter.
        world.look(Standing::Faulty, None);
        assert_eq!(world.look(Standing::Faulty, Some("two")).len(), 1);
    }

    #[test]
    fn who_is_back_at_another_path_keeps_its_count() {
        let mut world = World::new(ReAdd::Auto);
        let to = Path::new("/dev/c");
        world.look(Standing::Faulty, None);
        world.returning.done(world.now, MEMBER, to, Ok(()));
        assert_eq!(world.returning.members["/dev/c"].returns.len(), 1);
    }

    #[test]
    fn a_role_that_a_spare_took_is_not_asked_for() {
        let mut sight = sight(Standing::DeviceWent, Some("one"));
        sight.is_short = false;
        let look = |is_spare| {
            let find = &mut |member: &str| Some(Back { is_spare, ..back(member) });
            let mut world = World::new(ReAdd::Auto);
            let acts = world.returning.look(world.now, std::slice::from_ref(&sight), find);
            (acts.len(), world.says(), world.returning.next("home"))
        };
        let (acts, says, next) = look(false);
        assert!(says.contains("makes it a spare"), "{says}");
        assert_eq!((acts, next), (0, None));
        assert_eq!(look(true), (1, String::new(), None), "a spare is taken in as one");
    }
}

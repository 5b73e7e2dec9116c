//! Steadiness.

use super::*;

/// Rounds 1, 2, 3, ...
fn rounds(values: &[f64]) -> ByRepetition {
    (1..).zip(values.iter().copied()).collect()
}

fn steady(rounds: &ByRepetition) -> Window {
    match find_steady_state(rounds).unwrap() {
        SteadyState::Steady(window) => window,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flat_series_is_steady_at_once() {
    let window = steady(&rounds(&[100.0; 5]));
    assert_eq!((window.first, window.rounds, window.average), (1, 5, 100.0));
    assert_eq!((window.range, window.slope), (0.0, 0.0));
    assert_eq!((window.last(), window.holds(0), window.holds(1)), (5, false, true));
    assert_eq!((window.holds(5), window.holds(6)), (true, false));
}

/// A fresh device falls for three rounds; all that follow are one window.
#[test]
fn the_window_begins_where_the_fall_ends() {
    let values = [900.0, 600.0, 400.0, 205.0, 200.0, 198.0, 202.0, 199.0, 203.0];
    let window = steady(&rounds(&values));
    assert_eq!((window.first, window.rounds), (4, 6));
    let found = find_steady_state(&rounds(&values[..7])).unwrap();
    let SteadyState::NotSteady(window) = found else { panic!("{found:?}") };
    assert_eq!(window.first, 3);
    assert!(!window.is_steady());
    let short = find_steady_state(&rounds(&values[..4])).unwrap();
    assert_eq!(short, SteadyState::TooShort { have: 4, needed: 5 });
    let nothing = find_steady_state(&ByRepetition::new()).unwrap();
    assert_eq!(nothing, SteadyState::TooShort { have: 0, needed: 5 });
}

/// Five even rounds out of a cache, then the device itself: the first window does not count.
#[test]
fn a_plateau_at_the_start_is_not_what_is_kept_up() {
    let mut values = vec![400.0; 6];
    values.extend([300.0, 200.0]);
    assert_eq!(left(&rounds(&values)), ((1, 6), 7, true));
    values.extend([100.0; 5]);
    assert_eq!(steady(&rounds(&values)).first, 9);
}

/// A flash disk whose cache is full in the last round: nothing has settled.
#[test]
fn a_fall_after_the_window_leaves_it() {
    let values = [53.0, 57.0, 57.0, 60.0, 55.0, 59.0, 52.0, 33.0];
    assert!(matches!(find_steady_state(&rounds(&values[..7])), Some(SteadyState::Steady(_))));
    assert_eq!(left(&rounds(&values)), ((1, 7), 8, true));
    // Zeros before a fall are no steady state that was left.
    let zeros = [0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 1.0];
    assert!(matches!(find_steady_state(&rounds(&zeros)), Some(SteadyState::NotSteady(_))));
}

/// First and last round of the window that was left, the round that ended it, whether it fell.
fn left(rounds: &ByRepetition) -> ((u32, u32), u32, bool) {
    match find_steady_state(rounds).unwrap() {
        SteadyState::Left { was, round, fell } => ((was.first, was.last()), round, fell),
        other => panic!("{other:?}"),
    }
}

/// Round 4 failed: the rounds before it and after it are not five in a row.
#[test]
fn a_gap_ends_a_row() {
    let mut even = rounds(&[100.0; 8]);
    even.remove(&4);
    assert_eq!(find_steady_state(&even).unwrap(), SteadyState::TooShort { have: 4, needed: 5 });
    even.insert(9, 100.0);
    let window = steady(&even);
    assert_eq!((window.first, window.last()), (5, 9));
    // What came before a gap is not what is kept up.
    even.insert(11, 101.0);
    assert_eq!(find_steady_state(&even).unwrap(), SteadyState::TooShort { have: 1, needed: 5 });
    let last = ByRepetition::from([(u32::MAX - 1, 1.0), (u32::MAX, 1.0)]);
    let short = SteadyState::TooShort { have: 2, needed: 5 };
    assert_eq!(find_steady_state(&last).unwrap(), short);
}

/// Both limits are within: exactly 20 % and exactly 10 % pass, a little more does not.
#[test]
fn the_limits_belong_to_the_rule() {
    // Range 20 % without a slope.
    let range = |wide: f64| {
        judge_window(&[100.0 + wide, 100.0, 100.0 - 2.0 * wide, 100.0, 100.0 + wide], 0).unwrap()
    };
    assert!((range(20.0 / 3.0).range - 0.2).abs() < 1e-12 && range(20.0 / 3.0).is_steady());
    assert!(range(6.7).range > 0.2 && range(6.7).slope == 0.0 && !range(6.7).is_steady());
    // A line of 10 % from end to end.
    let line = |step: f64| {
        judge_window(&[-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| 100.0 + step * x), 0).unwrap()
    };
    assert!((line(2.5).slope - 0.1).abs() < 1e-12 && line(2.5).is_steady());
    assert!(line(2.6).slope > 0.1 && line(2.6).range < 0.2 && !line(2.6).is_steady());
    assert!((line(-2.6).slope + 0.104).abs() < 1e-12 && !line(-2.6).is_steady());
}

/// Values 1, 2, 4, 3, 5 by the textbook: slope 0.9, t = 0.9 / 0.251661 = 3.57624 with three degrees of
/// freedom, p = 0.037386.
#[test]
fn a_line_may_be_chance() {
    let window = judge_window(&[1.0, 2.0, 4.0, 3.0, 5.0], 0).unwrap();
    assert!((window.slope_p - 0.037_386_1).abs() < 1e-6, "{window:?}");
    let flat = judge_window(&[1.0, 2.0, 1.0], 0).unwrap();
    assert!((flat.slope, flat.slope_p) == (0.0, 1.0), "{flat:?}");
    assert_eq!(judge_window(&[1.0, 2.0], 0).unwrap().slope_p, 1.0);
    assert!(judge_window(&[1.0, 2.0, 3.0, 4.0], 0).unwrap().slope_p < 1e-6);
}

proptest! {
    /// The window ends with the rounds, keeps to the rule, and one round more would not.
    #[test]
    fn the_window_is_the_longest_at_the_end(
        values in prop::collection::vec(80.0_f64..120.0, 5..20),
    ) {
        let all = rounds(&values);
        let count = values.len();
        match find_steady_state(&all).unwrap() {
            SteadyState::Steady(window) => {
                prop_assert!(window.is_steady() && window.rounds >= 5);
                prop_assert_eq!(window.last() as usize, count);
                if window.rounds < count {
                    let wider = judge_window(&values[count - window.rounds - 1..], 1).unwrap();
                    prop_assert!(!wider.is_steady());
                }
            }
            SteadyState::NotSteady(window) => {
                prop_assert_eq!(judge_window(&values[count - 5..], window.first).unwrap(), window);
                prop_assert!(!window.is_steady());
                for five in values.windows(5) {
                    prop_assert!(!judge_window(five, 1).unwrap().is_steady());
                }
            }
            SteadyState::Left { was, round, fell } => {
                prop_assert!(was.is_steady() && was.last() + 1 == round);
                prop_assert_eq!(values[round as usize - 1] < was.average, fell);
                prop_assert!(!judge_window(&values[count - 5..], 1).unwrap().is_steady());
            }
            short => prop_assert!(false, "{:?}", short),
        }
    }

    /// Turned round, what rose falls as much; the range stays.
    #[test]
    fn a_window_turned_round(values in prop::collection::vec(1.0_f64..1e6, 2..12)) {
        let turned: Vec<f64> = values.iter().rev().copied().collect();
        let (one, other) = (judge_window(&values, 0).unwrap(), judge_window(&turned, 0).unwrap());
        prop_assert!((one.slope + other.slope).abs() < 1e-9);
        prop_assert!((one.range - other.range).abs() < 1e-9);
    }
}

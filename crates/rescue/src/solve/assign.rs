//! The assignment of members to roles with the largest sum of weights.
//!
//! Each role first takes its best member. If no two take the same one, nothing can be better. Otherwise the
//! Hungarian method finds the best in cubic time, up to [`MOST_EXACT`] roles or members; beyond, the heaviest pairs
//! are taken first, which gives at least half of the best sum.

use std::cmp::Reverse;

/// The weight of each pair: a row for each role, a column for each member. 0 is no pair.
pub(super) type Assignment = Vec<Vec<i64>>;

const MOST_EXACT: usize = 64;

/// Returns the member of each role. No member has two.
pub(super) fn assign(weights: &Assignment) -> Vec<Option<usize>> {
    let members = weights.first().map_or(0, Vec::len);
    let greedy = greedy(weights, members);
    let total: i64 = greedy
        .iter()
        .zip(weights)
        .map(|(member, row)| member.map_or(0, |member| row[member]))
        .sum();
    let bound: i64 = weights.iter().map(|row| row.iter().copied().max().unwrap_or(0)).sum();
    if total == bound || weights.len().max(members) > MOST_EXACT {
        return greedy;
    }
    hungarian(weights, weights.len().max(members))
}

fn greedy(weights: &Assignment, members: usize) -> Vec<Option<usize>> {
    let mut pairs: Vec<(Reverse<i64>, usize, usize)> = Vec::new();
    for (role, row) in weights.iter().enumerate() {
        let some = row.iter().enumerate().filter(|(_, weight)| **weight > 0);
        pairs.extend(some.map(|(member, weight)| (Reverse(*weight), role, member)));
    }
    pairs.sort_unstable();
    let (mut of_role, mut is_taken) = (vec![None; weights.len()], vec![false; members]);
    for (_, role, member) in pairs {
        if of_role[role].is_none() && !is_taken[member] {
            (of_role[role], is_taken[member]) = (Some(member), true);
        }
    }
    of_role
}

/// The Hungarian method with potentials, on a square of `size` rows and columns (1-based; 0 is "none").
fn hungarian(weights: &Assignment, size: usize) -> Vec<Option<usize>> {
    let weight = |role: usize, member: usize| -> i64 {
        weights.get(role - 1).and_then(|row| row.get(member - 1)).copied().unwrap_or(0)
    };
    let (mut of_roles, mut of_members) = (vec![0; size + 1], vec![0; size + 1]);
    // The role that each member has.
    let mut role_of = vec![0; size + 1];
    for role in 1..=size {
        role_of[0] = role;
        let mut member = 0;
        let (mut least, mut way) = (vec![i64::MAX; size + 1], vec![0; size + 1]);
        let mut is_used = vec![false; size + 1];
        while role_of[member] != 0 {
            is_used[member] = true;
            let (from, mut step, mut next) = (role_of[member], i64::MAX, 0);
            for other in (1..=size).filter(|other| !is_used[*other]) {
                let cost = -weight(from, other) - of_roles[from] - of_members[other];
                if cost < least[other] {
                    (least[other], way[other]) = (cost, member);
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=size {
                if is_used[other] {
                    of_roles[role_of[other]] += step;
                    of_members[other] -= step;
                } else if least[other] != i64::MAX {
                    least[other] -= step;
                }
            }
            member = next;
        }
        while member != 0 {
            role_of[member] = role_of[way[member]];
            member = way[member];
        }
    }
    let mut of_role = vec![None; weights.len()];
    for (member, &role) in role_of.iter().enumerate().skip(1) {
        if weight(role, member) > 0 {
            of_role[role - 1] = Some(member - 1);
        }
    }
    of_role
}

#[cfg(test)]
mod tests {
    use braid_seed::Rng;

    use super::*;

    fn best_of_all(weights: &Assignment, role: usize, taken: u32) -> i64 {
        let Some(row) = weights.get(role) else { return 0 };
        let without = best_of_all(weights, role + 1, taken);
        let with = row.iter().enumerate().filter(|(member, _)| taken >> member & 1 == 0);
        with.map(|(member, weight)| weight + best_of_all(weights, role + 1, taken | 1 << member))
            .fold(without, i64::max)
    }

    #[test]
    fn no_assignment_is_better() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let (roles, members) = (rng.within(1..=5) as usize, rng.within(1..=6) as usize);
            let most = rng.within(1..=20);
            let mut row = || (0..members).map(|_| rng.below(most) as i64).collect::<Vec<i64>>();
            let weights: Assignment = (0..roles).map(|_| row()).collect();
            let seated = assign(&weights);
            let mut taken: Vec<usize> = seated.iter().flatten().copied().collect();
            let total: i64 =
                seated.iter().enumerate().filter_map(|(role, m)| Some(weights[role][(*m)?])).sum();
            assert_eq!(total, best_of_all(&weights, 0, 0), "{weights:?}");
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len(), seated.iter().flatten().count());
        }
    }
}

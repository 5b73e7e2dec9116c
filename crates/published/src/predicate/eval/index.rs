//! One of several values, or some of them in a row.

use super::{Evaluation, Outcome};
use crate::predicate::expr::Expr;
use crate::predicate::value::{Items, Number, Value};

impl<'e> Evaluation<'e, '_> {
    /// The item at an index, which counts from the end where it is negative.
    pub(super) fn index(&mut self, expr: &Expr, of: &'e Expr, index: &'e Expr) -> Outcome {
        let (of, index) = (self.value(of)?, self.value(index)?);
        let Some(Number::Integer(index)) = index.number() else {
            return Err(expr.failed(format!("an index is a whole number, not {}", index.kind())));
        };
        let place = |length: usize| {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            let from_start = if index < 0 { index.checked_add(length)? } else { index };
            usize::try_from(from_start).ok()
        };
        let found = match &of {
            Value::Items(Items::Tuple | Items::List | Items::Range, items) => {
                place(items.len()).and_then(|place| items.get(place).cloned())
            }
            Value::Text(text) => {
                self.spend(expr, text.len() as u64 / 64)?;
                let c = place(text.chars().count()).and_then(|place| text.chars().nth(place));
                c.map(|c| Value::text(c.to_string()))
            }
            other => return Err(expr.failed(format!("{} has no index", other.kind()))),
        };
        found.ok_or_else(|| expr.failed(format!("there is no item {index}")))
    }

    /// From one index to before another; both end with what there is.
    pub(super) fn slice(
        &mut self,
        expr: &Expr,
        of: &'e Expr,
        from: Option<&'e Expr>,
        to: Option<&'e Expr>,
    ) -> Outcome {
        let of = self.value(of)?;
        let mut ends = [from, to].into_iter().map(|end| match end.map(|end| self.value(end)) {
            None => Ok(None),
            Some(value) => match value?.number() {
                Some(Number::Integer(index)) => Ok(Some(index)),
                _ => Err(expr.failed("an index is a whole number")),
            },
        });
        let (from, to) = (ends.next().transpose()?.flatten(), ends.next().transpose()?.flatten());
        let items = match &of {
            Value::Items(Items::Tuple | Items::List | Items::Range, _) | Value::Text(_) => {
                self.items(expr, &of)?
            }
            other => return Err(expr.failed(format!("{} has no index", other.kind()))),
        };
        let length = items.len();
        let place = |index: i64| {
            let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
            if index < 0 { length.saturating_sub(distance) } else { distance.min(length) }
        };
        let (from, to) = (from.map_or(0, place), to.map_or(length, place));
        let kept = &items[from.min(to)..to];
        Ok(match of {
            Value::Items(kind, _) => Value::Items(kind, kept.into()),
            _ => {
                let chars = kept.iter().filter_map(|item| match item {
                    Value::Text(c) => Some(&**c),
                    _ => None,
                });
                Value::text(chars.collect::<String>())
            }
        })
    }
}

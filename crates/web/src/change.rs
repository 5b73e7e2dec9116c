//! Changes between two values, as a JSON merge patch (RFC 7396): a given value is put in place, objects
//! member by member; `null` takes away. A value that is `null` is one that is not there.

use serde_json::{Map, Value};

/// The patch that makes `new` of `old`; none if there is nothing to change.
pub(crate) fn patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut changed = Map::new();
    for (key, value) in after {
        let change = match before.get(key) {
            Some(old) => patch(old, value),
            None if value.is_null() => None,
            None => Some(value.clone()),
        };
        changed.extend(change.map(|change| (key.clone(), change)));
    }
    let gone = before.iter().filter(|(key, old)| !old.is_null() && !after.contains_key(*key));
    changed.extend(gone.map(|(key, _)| (key.clone(), Value::Null)));
    (!changed.is_empty()).then_some(Value::Object(changed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 7396, section 2.
    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let object = target.as_object_mut().expect("it was made one");
        for (key, change) in changes {
            match change {
                Value::Null => drop(object.remove(key)),
                change => apply(object.entry(key.clone()).or_insert(Value::Null), change),
            }
        }
    }

    /// Without members that are `null`, which a merge patch does not tell from those that are not there.
    fn plain(value: &Value) -> Value {
        match value {
            Value::Object(object) => {
                let kept = object.iter().filter(|(_, value)| !value.is_null());
                kept.map(|(key, value)| (key.clone(), plain(value))).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0_u8..3).prop_map(Value::from),
            prop::collection::vec(0_u8..2, 0..3).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into())
        })
    }

    proptest! {
        #[test]
        fn a_patch_makes_the_new_of_the_old(
            old in prop::collection::btree_map("[a-c]", values(), 0..4),
            new in prop::collection::btree_map("[a-c]", values(), 0..4),
        ) {
            let object = |map: std::collections::BTreeMap<String, Value>| -> Value {
                map.into_iter().collect::<Map<_, _>>().into()
            };
            let (old, new) = (object(old), object(new));
            let mut patched = old.clone();
            if let Some(patch) = patch(&old, &new) {
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(plain(&patched), plain(&new));
            prop_assert_eq!(patch(&new, &new), None);
        }
    }
}

//! Unknown keys are named, with the nearest that is known.

/// Refuses a key that is not known.
pub(super) fn check_keys<'a>(
    table: &toml::Table,
    place: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), String> {
    for key in table.keys() {
        if known.clone().any(|name| name == key) {
            continue;
        }
        let hint = braid_stack::suggest(key, known.clone())
            .map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        let names: Vec<&str> = known.collect();
        return Err(format!(
            "unknown key {key:?} in {place}{hint}; known are: {}",
            names.join(", ")
        ));
    }
    Ok(())
}

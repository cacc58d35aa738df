//! Which known word a misspelt or foreign one means.

/// Our keys, and the words of other systems (SCHED_DEADLINE, rt-app, textbooks) for them.
pub(super) const ALIASES: [(&str, &str); 23] = [
    ("task", "tasks"),
    ("cpus", "cores"),
    ("cpu", "core affinity cpus"),
    ("policy", "scheduler algorithm"),
    ("period", "dl-period interval"),
    ("budget", "runtime wcet capacity dl-runtime"),
    ("deadline", "dl-deadline"),
    ("offset", "start phase"),
    ("start", "offset"),
    ("priority", "prio"),
    ("command", "exec cmd program args"),
    ("work", "spin"),
    ("spin", "run"),
    ("steps", "sleep"),
    ("windows", "table"),
    ("budget_group", "budget_groups budget-group"),
    ("group", "groups parent"),
    ("parent", "group budget_group"),
    ("server", "kind"),
    ("length", "duration"),
    ("recorded", "file"),
    ("sporadic", "longest"),
    ("aperiodic", "mean"),
];

/// The one of `known` that another system or version calls `word`.
pub(crate) fn meant<'a>(
    word: &str,
    aliases: &[(&'a str, &str)],
    known: &[&str],
) -> Option<&'a str> {
    let is_alias = |aliases: &str| aliases.split(' ').any(|alias| alias == word);
    aliases
        .iter()
        .find(|(meant, aliases)| is_alias(aliases) && known.contains(meant))
        .map(|(meant, _)| *meant)
}

/// The known word nearest to a misspelt one, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // Long words are no misspelt key, and the distance is quadratic in the length.
    let length = word.chars().count();
    if length > 24 {
        return None;
    }
    known
        .iter()
        .map(|known| (strsim::osa_distance(word, known), *known))
        .filter(|(distance, known)| *distance <= (length.max(known.len()) / 3).max(1))
        .filter(|(distance, known)| *distance < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

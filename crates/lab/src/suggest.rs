//! Suggestions for misspelled words ("Did you mean …?").

/// Returns the candidate most similar to the typed `word`, if any is similar enough.
pub fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Very long words are unlikely to be typing errors, and the comparison takes quadratic time.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .filter(|c| c.len() <= 64)
        .map(|c| {
            let other = c.to_lowercase();
            let distance = strsim::osa_distance(&lower, &other);
            let alike = strsim::jaro_winkler(&lower, &other);
            (distance, alike, c)
        })
        .filter(|&(distance, alike, c)| {
            let short = word.chars().count().min(c.chars().count());
            distance <= 1 + short / 4 && (distance < short || distance == 0) || alike > 0.9
        })
        .min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(b.2)))
        .map(|(_, _, c)| c)
}

/// Returns a remedy that names the closest candidate, or `otherwise`.
pub(crate) fn remedy<'c>(word: &str, candidates: impl Iterator<Item = &'c str>, otherwise: &str) -> String {
    match closest(word, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_mistakes_and_nothing_else() {
        let keys = ["queueing", "latency", "ports", "domain"];
        assert_eq!(closest("queuing", keys.into_iter()), Some("queueing"));
        assert_eq!(closest("latancy", keys.into_iter()), Some("latency"));
        assert_eq!(closest("port", keys.into_iter()), Some("ports"));
        assert_eq!(closest("colour", keys.into_iter()), None);
        assert_eq!(closest(&"x".repeat(1000), keys.into_iter()), None);
    }
}

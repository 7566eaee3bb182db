//! Negotiation of the type of an answer by the header `Accept` (RFC 9110, 12.5.1): [`quality`].

/// Preference of a client for a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Quality {
    /// Weight in thousandths; 0 if the client does not accept the type.
    pub thousandths: u16,
    /// The header names the type itself, and not only a range of types.
    pub is_named: bool,
}

/// Preference for the best of these types, such as `application/json`. Without a header, the client
/// accepts all types. The most specific range decides about a type.
pub fn quality(accept: &str, types: &[&str]) -> Quality {
    types.iter().map(|kind| of(accept, kind)).max().unwrap_or_default()
}

fn of(accept: &str, kind: &str) -> Quality {
    if accept.trim().is_empty() {
        return Quality { thousandths: 1_000, is_named: false };
    }
    let group = kind.split('/').next().unwrap_or_default();
    // Specificity from 1 to 3, and weight.
    let matching = accept.split(',').filter_map(|part| {
        let mut parameters = part.split(';').map(str::trim);
        let range = parameters.next().unwrap_or_default().to_ascii_lowercase();
        let specific = match range.strip_suffix("/*") {
            Some("*") => 1,
            Some(of) if of == group => 2,
            None if range == kind => 3,
            _ => return None,
        };
        let weight = parameters.find_map(|text| text.strip_prefix("q=").or_else(|| text.strip_prefix("Q=")));
        // A weight that is no number is ignored.
        let weight = weight.and_then(|text| text.parse::<f64>().ok()).filter(|weight| weight.is_finite());
        Some((specific, (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1_000.0).round() as u16))
    });
    match matching.max() {
        Some((specific, thousandths)) => Quality { thousandths, is_named: specific == 3 },
        None => Quality::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_gives_the_weight_of_a_type() {
        let cases = [
            ("", 1_000, false),
            ("text/plain", 1_000, true),
            ("TEXT/Plain;version=1;q=0.25", 250, true),
            ("text/*;q=0.5, */*;q=0.1", 500, false),
            ("*/*, text/plain;q=0", 0, true),
            ("*/*;q=0.1", 100, false),
            ("application/json", 0, false),
            ("text/plain;q=many", 1_000, true),
            ("text/plain;q=7", 1_000, true),
            ("text/plain;q=0.2, text/plain;version=0.0.4;q=0.7", 700, true),
        ];
        for (accept, thousandths, is_named) in cases {
            assert_eq!(quality(accept, &["text/plain"]), Quality { thousandths, is_named }, "{accept}");
        }
        let best = quality("text/plain;q=0.2, text/html;q=0.4", &["text/plain", "text/html"]);
        assert_eq!(best, Quality { thousandths: 400, is_named: true });
    }
}

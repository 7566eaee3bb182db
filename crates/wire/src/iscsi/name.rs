//! Names of iSCSI nodes (section 4.2.7; RFC 3722 for the permitted characters).

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 223;

/// True if a node may have this name: `iqn.`, `eui.` or `naa.` and a valid rest, in lower case.
pub fn is_valid(name: &str) -> bool {
    let hex = |digits: &str, lengths: &[usize]| {
        lengths.contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let qualified = |rest: &str| {
        let allowed = |c: char| {
            c.is_ascii_lowercase()
                || c.is_ascii_digit()
                || matches!(c, '-' | '.' | ':')
                || (!c.is_ascii() && c.is_alphanumeric())
        };
        let (date, rest) = rest.split_at_checked(7).unwrap_or((rest, ""));
        let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        let dated = date.len() == 7
            && date.as_bytes()[4] == b'-'
            && date.is_ascii()
            && digits(&date[..4])
            && digits(&date[5..]);
        dated && rest.len() > 1 && rest.starts_with('.') && rest.chars().all(allowed)
    };
    if name.len() > MAX_NAME_BYTES {
        return false;
    }
    match name.split_at_checked(4) {
        Some(("iqn.", rest)) => qualified(rest),
        Some(("eui.", rest)) => hex(rest, &[16]),
        Some(("naa.", rest)) => hex(rest, &[16, 32]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn names_of_the_three_types_are_valid() {
        for name in [
            "iqn.2026-11.net.example:disk-1",
            "iqn.2001-04.com.example",
            "eui.02004567a425678d",
            "naa.52004567ba64678d",
        ] {
            assert!(is_valid(name), "{name}");
        }
    }

    #[test]
    fn names_of_other_forms_are_invalid() {
        let long = format!("iqn.2026-11.net.example:{}", "x".repeat(200));
        for name in
            ["", "iqn.", "iqn.2026.net", "iqn.2026-11.Net", "iqn.2026-11.a b", "eui.123", "disk", "naa.5200", &long]
        {
            assert!(!is_valid(name), "{name}");
        }
    }
}

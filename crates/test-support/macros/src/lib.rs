//! Attribute [`macro@needs`].

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// All peers that the build script knows, separated by tabs.
const PEERS: &str = env!("KNOWN_PEERS");
/// `peer=reason` for each missing peer, separated by tabs.
const MISSING: &str = env!("MISSING_PEERS");
/// True if SANLOOM_REQUIRE_PEERS is set to anything but empty or `0`.
const REQUIRED: bool = matches!(env!("PEERS_ARE_REQUIRED").as_bytes(), b"1");

/// Names the peers of a test: `#[needs("tshark", "tgtadm")]` above `#[test]`.
///
/// If a peer was missing when the test was built, libtest reports the test as ignored, with the
/// reason. If SANLOOM_REQUIRE_PEERS is set (to anything but empty or `0`), the test fails instead.
/// `build.rs` of this crate has the list of peers.
#[proc_macro_attribute]
pub fn needs(peers: TokenStream, item: TokenStream) -> TokenStream {
    let literals = peers.into_iter().filter(|token| matches!(token, TokenTree::Literal(_)));
    let peers: Vec<String> = literals.map(|name| name.to_string().trim_matches('"').to_owned()).collect();
    if let Some(unknown) = peers.iter().find(|name| !PEERS.split('\t').any(|known| known == **name)) {
        return error(&format!("unknown peer `{unknown}`; crates/test-support/macros/build.rs lists the peers"));
    }
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    if !tokens.iter().any(is_test) {
        return error("write `#[needs(...)]` above `#[test]`");
    }
    let reasons = MISSING.split('\t').filter_map(|entry| entry.split_once('='));
    let reasons: Vec<&str> =
        reasons.filter(|(name, _)| peers.iter().any(|peer| peer == name)).map(|(_, reason)| reason).collect();
    if reasons.is_empty() {
        return tokens.into_iter().collect();
    }
    let reason = reasons.join("; ");
    if REQUIRED {
        return failing(tokens, &reason);
    }
    let ignored: TokenStream = parse(&format!("#[{} = {reason:?}]", "ignore"));
    ignored.into_iter().chain(tokens).collect()
}

fn is_test(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && group.stream().to_string() == "test")
}

/// The same test, whose first statement panics.
fn failing(mut tokens: Vec<TokenTree>, reason: &str) -> TokenStream {
    if let Some(TokenTree::Group(body)) = tokens.pop() {
        let first = parse(&format!("::sanloom_test_support::peer_is_missing({reason:?});"));
        tokens.push(Group::new(Delimiter::Brace, first.into_iter().chain(body.stream()).collect()).into());
    }
    tokens.into_iter().collect()
}

fn error(message: &str) -> TokenStream {
    parse(&format!("::std::compile_error!({message:?});"))
}

fn parse(code: &str) -> TokenStream {
    code.parse().unwrap_or_default()
}
